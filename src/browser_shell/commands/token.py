"""`browser-shell token`: make key pairs and tokens."""

from __future__ import annotations

import argparse
import base64
import os
import re
import sys
import time
from pathlib import Path

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.http.tokens import (
    ALGORITHMS,
    MAX_LIFETIME_SECONDS,
    make_private_key,
    make_token,
    private_pem,
    public_pem,
    read_private_key,
)
from browser_shell.settings import read_key_file

_DURATION = re.compile(r"([1-9][0-9]{0,8})([smhd])")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def add_token_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    token = commands.add_parser("token", help="make keys and tokens").add_subparsers(required=True, metavar="action")

    keygen = token.add_parser("keygen", help="make a key pair and print the value of JWT_PUBLIC_KEY")
    keygen.add_argument(
        "--algorithm", choices=ALGORITHMS, default=ALGORITHMS[0], help="signature algorithm (default: %(default)s)"
    )
    keygen.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="directory for private.pem and public.pem"
    )
    keygen.set_defaults(command=_keygen)

    make = token.add_parser("make", help="print a token")
    make.add_argument("--key", type=Path, required=True, metavar="FILE", help="private.pem")
    make.add_argument(
        "--subject", required=True, help="owner of the token; sessions and audit records belong to a subject"
    )
    make.add_argument("--ttl", default="1h", metavar="TIME", help="such as 30m, 12h, 7d (default: 1h)")
    make.add_argument("--audience", help="claim aud, for servers with JWT_AUDIENCE")
    make.add_argument("--issuer", help="claim iss, for servers with JWT_ISSUER")
    make.set_defaults(command=_make)


def _keygen(arguments: argparse.Namespace) -> int:
    key = make_private_key(arguments.algorithm)
    directory: Path = arguments.out
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_new_file(directory / "private.pem", private_pem(key), 0o600)
        _write_new_file(directory / "public.pem", public_pem(key), 0o644)
    except OSError as cause:
        raise ConfigurationInvalid(f"--out {directory}: {cause.strerror}; nothing is overwritten") from cause
    print(f"JWT_PUBLIC_KEY={base64.b64encode(public_pem(key)).decode()}")
    if arguments.algorithm != ALGORITHMS[0]:
        print(f"JWT_ALGORITHM={arguments.algorithm}")
    print(f"Keep {directory / 'private.pem'} away from the server: it only needs the line above.", file=sys.stderr)
    return 0


def _make(arguments: argparse.Namespace) -> int:
    key = read_private_key(read_key_file(arguments.key))
    try:
        token = make_token(
            key,
            subject=arguments.subject,
            seconds=_duration_seconds(arguments.ttl),
            now=time.time(),
            audience=arguments.audience,
            issuer=arguments.issuer,
        )
    except ValueError as invalid:
        raise ConfigurationInvalid(f"token make: {invalid}") from invalid
    print(token)
    return 0


def _duration_seconds(text: str) -> int:
    duration = _DURATION.fullmatch(text)
    seconds = int(duration[1]) * _UNIT_SECONDS[duration[2]] if duration else 0
    if not 0 < seconds <= MAX_LIFETIME_SECONDS:
        raise ConfigurationInvalid(f"--ttl: {text[:40]!r} is not a time such as 30m, 12h or 7d, at most a year")
    return seconds


def _write_new_file(path: Path, content: bytes, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode), "wb") as file:
        file.write(content)
