"""Resources that a job must not reach, besides the corpus: kernel, host, engine, server, network."""

from __future__ import annotations

from typing import Any

import pytest

from support.job_box import JobBox

_CALL = "import ctypes; l=ctypes.CDLL(None,use_errno=True); b=ctypes.create_string_buffer(4096); "
X86_64_CALLS = {
    "io_uring_setup with a real ring": "425,4,b",
    "unshare of the user namespace": "272,0x10000000",
    "unshare of the mount namespace": "272,0x20000",
    "unshare of the network namespace": "272,0x40000000",
    "clone into a user namespace": "56,0x10000011,0,0,0,0",
    "clone3": "435,b,64",
    "setns": "308,0,0",
    "keyctl": "250,0,-3,0,0,0",
    "add_key": "248,b'user',b'x',b'y',1,-2",
    "request_key": "249,b'user',b'x',b'',-2",
    "bpf": "321,0,b,72",
    "userfaultfd": "323,0",
    "userfaultfd for user mode": "323,1",
    "perf_event_open": "298,b,0,-1,-1,0",
    "mount": "165,b'none',b'/tmp',b'tmpfs',0,None",
    "a writable remount of the root": "165,None,b'/',None,32,None",
    "umount": "166,b'/proc',2",
    "pivot_root": "155,b'/tmp',b'/tmp'",
    "fsopen": "430,b'tmpfs',0",
    "open_tree": "428,-100,b'/',1",
    "mount_setattr": "442,-100,b'/',0,b,32",
    "ptrace": "101,0,0,0,0",
    "process_vm_readv": "310,1,0,0,0,0,0",
    "pidfd_getfd": "438,0,0,0",
    "kcmp": "312,1,1,0,0,0",
    "open_by_handle_at": "304,-100,b,0",
    "name_to_handle_at": "303,-100,b'/',b,b,0",
    "init_module": "175,b,10,b''",
    "finit_module": "313,0,b'',0",
    "kexec_load": "246,0,0,0,0",
    "reboot": "169,0xfee1dead,672274793,0,0",
    "settimeofday": "164,b,0",
    "clock_settime": "227,0,b",
    "adjtimex": "159,ctypes.byref((ctypes.c_int*64)(1))",
    "swapon": "167,b'/tmp/x',0",
    "acct": "163,b'/tmp/x'",
    "syslog": "103,3,b,100",
    "sethostname": "170,b'x',1",
    "chroot": "161,b'/tmp'",
    "a device node": "133,b'/tmp/node',0o20666,0x101",
    "setuid to root": "105,0",
    "setgid to root": "106,0",
    "iopl": "172,3",
    "modify_ldt": "154,0,b,64",
    "quotactl": "179,0x80000100,None,0,b",
    "memfd_secret": "447,0",
    "a call of the x32 table": "0x40000000+39",
}
FORBIDDEN = {
    "tcp to a public address": "import socket; socket.create_connection(('192.0.2.1',443),3)",
    "tcp over IPv6": "import socket; socket.create_connection(('2001:db8::1',443),3)",
    "a name is looked up": "import socket; socket.getaddrinfo('example.com',443)",
    "the engine's bridge": "import socket; socket.create_connection(('172.17.0.1',80),3)",
    "a packet socket": "import socket; socket.socket(17,3,0)",
    "a vsock to the host": "import socket; socket.socket(40,1,0)",
    "a netlink socket of the firewall": "import socket; socket.socket(16,3,12)",
    "a raw IPv6 socket": "import socket; socket.socket(10,3,58)",
    "a bluetooth socket": "import socket; socket.socket(31,3,1)",
    "a socket of the kernel's crypto": "import socket; socket.socket(38,5,0)",
    "an interface brought up": (
        "import fcntl,socket,struct; fcntl.ioctl(socket.socket(),0x8914,struct.pack('16sH14x',b'lo',1))"
    ),
    "a file in the workspace": "open('/work/x','w')",
    "a workspace file changed": "open('/work/program.py','a')",
    "a workspace file's mode": "import os; os.chmod('/work/program.py',0o777)",
    "a file beside the image's packages": "open('/opt/jobs/x','w')",
    "the init's program": "open('/usr/local/lib/browser-shell/job_init/__main__.py','a')",
    "a file in /dev": "open('/dev/x','w')",
    "a file in /usr": "open('/usr/x','w')",
    "a file in /var": "open('/var/x','w')",
    "a file in /run": "open('/run/x','w')",
    "the passwords": "open('/etc/shadow').read()",
    "the init's environment": "open('/proc/1/environ').read()",
    "the init's memory": "open('/proc/1/mem','rb').read(1)",
    "the init's memory map": "print(open('/proc/1/maps').read()[:1] or 1/0)",
    "the init's open files": "import os; os.listdir('/proc/1/fd')",
    "the init's limits": "import resource; resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))",
    "the init's root": "import os; os.listdir('/proc/1/root/')",
    "the kernel's memory": "open('/proc/kcore','rb').read(1) or 1/0",
    "the kernel's keys": "print(open('/proc/keys').read() and 1/1 or 1/0)",
    "sysrq": "open('/proc/sysrq-trigger','w').write('b')",
    "a sysctl": "open('/proc/sys/kernel/hostname','w').write('x')",
    "a network sysctl": "open('/proc/sys/net/ipv4/ip_forward','w').write('1')",
    "the bits of a misc format": "open('/proc/sys/fs/binfmt_misc/register','w').write('x')",
    "the uevent helper": "open('/sys/kernel/uevent_helper','w').write('x')",
    "a file in /sys": "open('/sys/kernel/x','w')",
    "the power state": "open('/sys/power/state','w').write('mem')",
    "a new cgroup": (
        "import glob,os; [os.mkdir(p.rstrip('/')+'/x') for p in glob.glob('/sys/fs/cgroup/*/') or ['/sys/fs/cgroup']]"
    ),
    "the memory limit": (
        "import glob; [open(p,'w').write('-1') for p in"
        " glob.glob('/sys/fs/cgroup/memory/memory.limit_in_bytes')+glob.glob('/sys/fs/cgroup/memory.max')] or 1/0"
    ),
    "the release agent": "open('/sys/fs/cgroup/memory/release_agent','w').write('/x')",
    "a disk": "open('/dev/vda','rb')",
    "another disk": "open('/dev/sda','rb')",
    "physical memory": "open('/dev/mem','rb')",
    "the kernel's message buffer": "open('/dev/kmsg').read(1)",
    "fuse": "open('/dev/fuse','rb')",
    "kvm": "open('/dev/kvm','rb')",
    "a tun device": "open('/dev/net/tun','rb')",
    "Docker's socket": "import socket; socket.socket(1).connect('/var/run/docker.sock')",
    "Podman's socket": "import socket; socket.socket(1).connect('/run/podman/podman.sock')",
    "a program in /tmp": (
        "import os,shutil,subprocess; shutil.copy('/usr/bin/true','/tmp/t'); os.chmod('/tmp/t',0o755);"
        " subprocess.run(['/tmp/t'],check=True)"
    ),
    "a program in /output": (
        "import os,shutil,subprocess; shutil.copy('/usr/bin/true','/output/t'); os.chmod('/output/t',0o755);"
        " subprocess.run(['/output/t'],check=True)"
    ),
    "more open files": "import resource as r; r.setrlimit(r.RLIMIT_NOFILE,(99999,99999))",
    "a larger file": "import resource as r; r.setrlimit(r.RLIMIT_FSIZE,(-1,-1))",
    "core files": "import resource as r; r.setrlimit(r.RLIMIT_CORE,(-1,-1))",
    "a lower score for the OOM killer": "open('/proc/self/oom_score_adj','wb',0).write(b'-1000')",
    "a real-time schedule": "import os; os.sched_setscheduler(0,os.SCHED_FIFO,os.sched_param(1))",
    "a signal to a process outside": "import os; [os.kill(p,0) for p in (2**20,)]",
}
FACTS = {
    "no capability is left": (
        "print([l for l in open('/proc/self/status') if l.startswith('Cap') and l.split()[1].strip('0')])",
        "[]",
    ),
    "privileges cannot be gained": ("print('NoNewPrivs:\\t1' in open('/proc/self/status').read())", "True"),
    "two system call filters are in force": (
        "print([l.split()[1] for l in open('/proc/self/status') if l.startswith('Seccomp_filters')][0] >= '2')",
        "True",
    ),
    "the account has no other groups": (
        "import os; print(os.getuid(), os.getgid(), os.getgroups())",
        "10001 10001 [10001]",
    ),
    "only loopback exists": ("import socket; print([n for _, n in socket.if_nameindex() if n != 'lo'])", "[]"),
    "there is no file with setuid": (
        "import os,stat\nfound=[]\n"
        "for top, _, names in os.walk('/'):\n"
        "  if top.startswith(('/proc','/sys')): continue\n"
        "  for n in names:\n"
        "    m=os.lstat(os.path.join(top,n)).st_mode\n"
        "    if stat.S_ISREG(m) and m & 0o6000: found.append(n)\n"
        "print(found)",
        "[]",
    ),
    "only the container's own processes are seen": (
        "import os; print(max(int(p) for p in os.listdir('/proc') if p.isdigit()) < 5000,"
        " open('/proc/1/comm').read().strip())",
        "True python3",
    ),
    "the environment holds nothing of the server": (
        "import os; print(sorted(k for k in os.environ if not k.startswith(('PLAYWRIGHT_','PYTHON'))"
        " and k not in ('HOME','HOSTNAME','LANG','LC_CTYPE','PATH','PWD','container','TERM')))",
        "[]",
    ),
    "the host's name is hidden": ("import socket; print(socket.gethostname())", "job"),
    "there is no socket file at all": (
        "import os,stat\nfound=[]\n"
        "for top, _, names in os.walk('/'):\n"
        "  if top.startswith(('/proc','/sys')): continue\n"
        "  found += [n for n in names if stat.S_ISSOCK(os.lstat(os.path.join(top,n)).st_mode)]\n"
        "print(found)",
        "[]",
    ),
    "nothing but memory can be written": (
        "import os\nfound=[]\n"
        "for top, _, _ in os.walk('/'):\n"
        "  if top.startswith(('/proc','/sys')): continue\n"
        "  try: os.close(os.open(top+'/probe',os.O_CREAT|os.O_EXCL|os.O_WRONLY)); os.unlink(top+'/probe')\n"
        "  except OSError: continue\n"
        "  found.append(top)\n"
        "print(sorted(set(found)-{'/dev/mqueue'}))",
        "['/dev/shm', '/output', '/tmp', '/var/tmp']",
    ),
    "no program runs from what can be written": (
        "places=('/output','/tmp','/var/tmp','/dev/shm','/dev/mqueue','/run')\n"
        "lines=[l.split() for l in open('/proc/mounts')]\n"
        "print([l[1] for l in lines if l[1] in places and not {'noexec','nosuid','nodev'} <= set(l[3].split(','))])",
        "[]",
    ),
    "memory that runs out takes the program before the init": (
        "print(open('/proc/self/oom_score_adj').read().strip())",
        "500",
    ),
    "the kernel grants one core": (
        "place='/sys/fs/cgroup/cpu'\n"
        "try: quota, period = open(place+'.max').read().split()\n"
        "except OSError: quota, period = (open(f'{place}/cpu.cfs_{n}_us').read() for n in ('quota', 'period'))\n"
        "print(int(quota)/int(period))",
        "1.0",
    ),
    "cores are not written": ("import resource as r; print(r.getrlimit(r.RLIMIT_CORE))", "(0, 0)"),
}


@pytest.fixture(scope="module")
def outcomes(box: JobBox) -> dict[str, dict[str, Any]]:
    calls = {f"call {name}": f"{_CALL}print(l.syscall({words}))" for name, words in X86_64_CALLS.items()}
    facts = {f"fact {name}": code for name, (code, _) in FACTS.items()}
    return box.outcomes({**FORBIDDEN, **calls, **facts})


@pytest.mark.promise("jobs:walls")
@pytest.mark.parametrize("name", FORBIDDEN)
def test_a_job_cannot_access(name: str, outcomes: dict[str, dict[str, Any]]) -> None:
    # setrlimit raises ValueError. The code above turns an empty file into a ZeroDivisionError.
    assert {"OSError", "ValueError", "ZeroDivisionError"} & set(outcomes[name]["raised"]), outcomes[name]


@pytest.mark.promise("jobs:system-calls")
@pytest.mark.parametrize("name", X86_64_CALLS)
def test_a_job_cannot_call(name: str, outcomes: dict[str, dict[str, Any]]) -> None:
    assert outcomes[f"call {name}"]["out"] == "-1"


@pytest.mark.promise("jobs:walls")
@pytest.mark.parametrize("name", FACTS)
def test_a_job_sees(name: str, outcomes: dict[str, dict[str, Any]]) -> None:
    assert outcomes[f"fact {name}"]["out"] == FACTS[name][1]
