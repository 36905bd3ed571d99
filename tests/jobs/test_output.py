"""Only regular files leave a container, bounded in size and number."""

from __future__ import annotations

import hashlib

import pytest

from browser_shell.core.containers import ContainerEnd, ContainerLimits, RefusalReason
from support.job_box import MIB, JobBox

SMALL = ContainerLimits(timeout_seconds=30, output_bytes=16 * MIB, scratch_bytes=16 * MIB, output_entries=500)


@pytest.mark.promise("jobs:output")
def test_files_arrive_unchanged(box: JobBox) -> None:
    finished = box.python(
        "import os,hashlib\n"
        "os.makedirs('/output/a/b')\n"
        "data=os.urandom(9_000_001)\n"
        "open('/output/a/b/large.bin','wb').write(data)\n"
        "open('/output/empty','w')\n"
        "open('/output/a/größe 中.txt','w').write('x')\n"
        "print(hashlib.sha256(data).hexdigest())"
    )
    assert finished.report.output_complete
    assert finished.files == ["a", "a/b", "a/b/large.bin", "a/größe 中.txt", "empty"]
    data = (finished.output / "a/b/large.bin").read_bytes()
    assert hashlib.sha256(data).hexdigest().encode() == finished.log.strip()
    assert finished.report.refused_count == 0


@pytest.mark.promise("jobs:output")
def test_links_pipes_and_unreadable_files_are_refused_by_name(box: JobBox) -> None:
    finished = box.python(
        "import os,socket\n"
        "os.symlink('/etc/passwd','/output/absolute')\n"
        "os.symlink('/','/output/directory')\n"
        "os.symlink('absolute','/output/chain')\n"
        "os.mkfifo('/output/fifo')\n"
        "socket.socket(1).bind('/output/socket')\n"
        "open('/output/locked','w').write('x'); os.chmod('/output/locked',0)\n"
        "os.mkdir('/output/closed'); open('/output/closed/x','w'); os.chmod('/output/closed',0)\n"
        "open('/output/first','w').write('same'); os.link('/output/first','/output/second')\n"
    )
    assert finished.report.exit_code == 0, finished.log
    refused = {each.path: each.reason for each in finished.report.refused}
    assert refused == {
        "absolute": RefusalReason.LINK,
        "directory": RefusalReason.LINK,
        "chain": RefusalReason.LINK,
        "fifo": RefusalReason.SPECIAL_FILE,
        "socket": RefusalReason.SPECIAL_FILE,
        "locked": RefusalReason.UNREADABLE,
        "closed": RefusalReason.UNREADABLE,
    }
    assert finished.files == ["first", "second"]
    assert (finished.output / "second").stat().st_nlink == 1


@pytest.mark.promise("jobs:output")
def test_unprintable_names_are_refused_and_reported_in_ascii(box: JobBox) -> None:
    finished = box.python(
        "import os\n"
        "odd = (b'\\xff\\xfe', b'new\\nline', b'\\x1b[2J', 'a\\u202egnp.exe'.encode(), b'back\\\\slash')\n"
        "for name in (*odd, b' ', b'-rf', b'...'):\n"
        "  open(b'/output/'+name,'w').write('x')\n"
    )
    assert finished.report.output_complete
    assert finished.files == [" ", "-rf", "..."]
    assert finished.report.refused_count == 5
    assert all(each.reason is RefusalReason.BAD_NAME and each.path.isascii() for each in finished.report.refused)


@pytest.mark.promise("jobs:output")
def test_a_sparse_file_larger_than_the_limit_does_not_arrive(box: JobBox) -> None:
    finished = box.python(
        "import os\n"
        "for name in ('tmp','output'):\n"
        "  try: os.truncate(os.open(f'/{name}/sparse',os.O_CREAT|os.O_WRONLY),10**12)\n"
        "  except OSError as error: print(error.errno)\n"
        "for n in range(4): os.truncate(os.open(f'/output/{n}',os.O_CREAT|os.O_WRONLY),15*1024*1024)\n",
        limits=SMALL,
    )
    assert finished.log.split() == [b"27", b"27"], "EFBIG: a file beyond the limit cannot be created"
    sizes = [path.stat().st_size for path in finished.output.iterdir()]
    assert sum(sizes) <= SMALL.output_bytes
    assert RefusalReason.TOO_LARGE in {each.reason for each in finished.report.refused}


@pytest.mark.promise("jobs:output")
def test_a_full_output_directory_is_reported(box: JobBox) -> None:
    finished = box.python(
        "try:\n"
        "  with open('/output/large','wb',0) as f:\n"
        "    while True: f.write(b'x'*65536)\n"
        "except OSError as error: print(error.errno); raise SystemExit(4)",
        limits=SMALL,
    )
    assert finished.report.end is ContainerEnd.OUTPUT_FULL
    assert finished.report.exit_code == 4
    assert (finished.output / "large").stat().st_size <= SMALL.output_bytes


@pytest.mark.promise("jobs:output")
def test_a_full_scratch_directory_is_an_error_inside_the_job_only(box: JobBox) -> None:
    finished = box.python(
        "import os\n"
        "for place in ('/tmp/x','/dev/shm/x'):\n"
        "  try:\n"
        "    with open(place,'wb',0) as f:\n"
        "      for _ in range(4096): f.write(b'x'*65536)\n"
        "  except OSError as error: print(error.errno)\n",
        limits=SMALL,
    )
    assert finished.report.exit_code == 0
    assert finished.log.split() in ([b"28", b"28"], [b"27", b"27"], [b"28", b"27"], [b"27", b"28"])


@pytest.mark.promise("jobs:output")
def test_files_beyond_the_limit_are_not_handed_over(box: JobBox) -> None:
    finished = box.python(
        "import os\n"
        "for n in range(20_000):\n"
        "  try: os.mkdir(f'/output/{n}') if n % 2 else open(f'/output/{n}','w').close()\n"
        "  except OSError: break\n"
        "print(n)",
        limits=SMALL,
    )
    assert finished.report.exit_code == 0
    assert len(finished.files) <= SMALL.output_entries
    if box.name == "docker":
        assert finished.report.end is ContainerEnd.OUTPUT_FULL, "nr_inodes of the tmpfs"
    else:
        assert [each.reason for each in finished.report.refused] == [RefusalReason.TOO_MANY]


@pytest.mark.promise("jobs:output")
def test_a_deep_tree_is_cut(box: JobBox) -> None:
    finished = box.python(
        "import os\nos.chdir('/output')\nfor n in range(300):\n  os.mkdir('d'); os.chdir('d')\nopen('x','w')"
    )
    assert finished.report.output_complete
    assert max(len(name.split("/")) for name in finished.files) <= 32
    assert [each.reason for each in finished.report.refused] == [RefusalReason.TOO_DEEP]


@pytest.mark.promise("jobs:output")
def test_the_hand_over_cannot_be_forged(box: JobBox) -> None:
    finished = box.python(
        "import os\n"
        "forged=b'browser-shell hand-over 1\\nE\\0\\0'+bytes(8)\n"
        "os.write(1,forged)\n"
        "for number in range(3,20):\n"
        "  try: os.write(number,forged)\n"
        "  except OSError: pass\n"
        "try: os.write(os.open('/proc/1/fd/1',os.O_WRONLY),forged); print('forged')\n"
        "except OSError: print('no way')\n"
        "open('/output/real','w').write('x')"
    )
    assert finished.log.endswith(b"no way\n")
    assert finished.files == ["real"]
    assert finished.report.output_complete


@pytest.mark.promise("jobs:output")
def test_output_cannot_change_during_the_hand_over(box: JobBox) -> None:
    finished = box.python(
        "import os,time\n"
        "with open('/output/large','wb') as f:\n"
        "  for _ in range(200): f.write(b'x'*1024*1024)\n"
        "parent=os.getpid()\n"
        "if os.fork()==0:\n"
        "  os.setsid()\n"
        "  while os.getppid()==parent: time.sleep(0.001)\n"
        "  time.sleep(0.1)\n"
        "  os.truncate('/output/large',0)\n"
        "  time.sleep(60)\n"
    )
    assert finished.report.output_complete
    assert (finished.output / "large").read_bytes().strip(b"x") == b""


def test_binary_output_is_logged_unchanged(box: JobBox) -> None:
    finished = box.python("import os\nos.write(1,bytes(range(256)));os.write(2,b'\\xff'*3);os.write(1,b'x'*300_000)")
    assert finished.log == bytes(range(256)) + b"\xff" * 3 + b"x" * 300_000
