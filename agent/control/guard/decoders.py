"""What programs print that decode, unpack or change text."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable

from agent.control.guard.command import Command
from agent.control.guard.contents import MAX_TEXT, file_content
from agent.control.guard.expand import ansi
from agent.control.guard.marks import (
    DECODED,
    LOCAL,
    Stream,
    has_mark,
    literal,
)


def _source(command: Command) -> Stream:
    return (
        file_content(command.state.resolve(command.operands[-1]), command.state) if command.operands else command.stdin
    )


def _decode(read: Callable[[str], bytes | str], source: Stream) -> Stream:
    traits = source.traits | {DECODED}
    if source.text is None or has_mark(source.text) or len(source.text) > MAX_TEXT:
        return Stream(None, traits)
    try:
        plain = read(source.text)
    except (ValueError, binascii.Error, IndexError):
        return Stream(None, traits)
    return Stream(plain if isinstance(plain, str) else plain.decode("utf-8", "replace"), traits)


def _compact(text: str) -> str:
    return re.sub(r"\s", "", text)


def _pad(text: str, size: int) -> str:
    return text + "=" * (-len(text) % size)


def _base64(command: Command) -> Stream:
    if command.has("-d", "-D", "--decode"):
        return _decode(lambda text: base64.b64decode(_pad(_compact(text), 4)), _source(command))
    return _source(command).through()


def _base32(command: Command) -> Stream:
    if command.has("-d", "-D", "--decode"):
        return _decode(lambda text: base64.b32decode(_pad(_compact(text), 8), casefold=True), _source(command))
    return _source(command).through()


def _xxd(command: Command) -> Stream:
    if any(name in ("-r", "-rp", "-pr") or "r" in name for name, _ in command.options):
        source = (
            file_content(command.state.resolve(command.operands[0]), command.state)
            if command.operands
            else command.stdin
        )
        return _decode(lambda text: bytes.fromhex(_compact(text)), source)
    return _source(command).through()


def _rev(command: Command) -> Stream:
    return _decode(lambda text: "".join(f"{line[::-1]}\n" for line in text.splitlines()), _source(command))


def _openssl(command: Command) -> Stream:
    flags = {name for name, _ in command.options}
    verb = command.operands[0] if command.operands else ""
    if verb in ("base64", "enc") and flags & {"-d"}:
        ciphers = {name for name in flags if re.match(r"-(?:aes|des|bf|rc|cast|chacha|camellia|id-aes|aria|sm4)", name)}
        if verb == "base64" or (flags & {"-base64", "-a"} and not ciphers):
            return _decode(lambda text: base64.b64decode(_pad(_compact(text), 4)), command.stdin)
        return command.stdin.through(DECODED)
    return command.stdin.through(LOCAL)


def _unpack(command: Command) -> Stream:
    return _source(command).through(DECODED)


def _gzip(command: Command) -> Stream:
    return _unpack(command) if command.has("-d", "--decompress", "--uncompress") else _source(command).through(LOCAL)


def _gpg(command: Command) -> Stream:
    return command.stdin.through(DECODED) if command.has("-d", "--decrypt") else command.stdin.through(LOCAL)


_CLASSES = {
    "[:upper:]": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "[:lower:]": "abcdefghijklmnopqrstuvwxyz",
    "[:digit:]": "0123456789",
    "[:space:]": " \t\n\r\f\v",
}


def _set(text: str) -> str:
    for name, members in _CLASSES.items():
        text = text.replace(name, members)
    text = ansi(text)
    return re.sub(
        r"(.)-(.)",
        lambda match: "".join(map(chr, range(ord(match[1]), min(ord(match[2]), ord(match[1]) + 256) + 1))),
        text,
        flags=re.DOTALL,
    )


def _tr(command: Command) -> Stream:
    sets = [literal(one) for one in command.operands]
    if not sets or has_mark("".join(sets)) or command.has("-c", "-C", "--complement", "-t"):
        return command.stdin.through(DECODED)
    first = _set(sets[0])
    if command.has("-d", "--delete"):
        return _decode(lambda text: "".join(char for char in text if char not in first), command.stdin)
    if len(sets) < 2:
        return (
            _decode(lambda text: re.sub(f"([{re.escape(first)}])\\1+", r"\1", text), command.stdin)
            if first
            else command.stdin
        )
    second = _set(sets[1])
    second += second[-1:] * (len(first) - len(second))
    table = str.maketrans(dict(zip(first, second, strict=False)))
    return _decode(lambda text: text.translate(table), command.stdin)


def _sed(command: Command) -> Stream:
    scripts = command.values("-e", "--expression") or command.operands[:1]
    files = command.operands if command.values("-e", "--expression") else command.operands[1:]
    source = file_content(command.state.resolve(files[-1]), command.state) if files else command.stdin
    match = re.fullmatch(r"s(.)(.*?)\1(.*?)\1([gi]*)", scripts[0]) if len(scripts) == 1 else None
    if (
        match is None
        or source.text is None
        or has_mark(source.text)
        or len(source.text) > MAX_TEXT
        or len(match[2]) > 64
    ):
        return source.through(DECODED) if source.text is not None else source.through(LOCAL)
    if re.search(r"[\\\[\].*^$+?(){}|&]", match[2] + match[3]):
        return source.through(DECODED)
    return _decode(lambda text: text.replace(match[2], match[3], -1 if "g" in match[4] else 1), source)


OUTPUTS: dict[str, Callable[[Command], Stream]] = {
    "base64": _base64,
    "gbase64": _base64,
    "base32": _base32,
    "xxd": _xxd,
    "rev": _rev,
    "tr": _tr,
    "sed": _sed,
    "openssl": _openssl,
    "gunzip": _unpack,
    "zcat": _unpack,
    "gzcat": _unpack,
    "bunzip2": _unpack,
    "bzcat": _unpack,
    "unxz": _unpack,
    "xzcat": _unpack,
    "zstdcat": _unpack,
    "unzstd": _unpack,
    "uudecode": _unpack,
    "gzip": _gzip,
    "bzip2": _gzip,
    "xz": _gzip,
    "zstd": _gzip,
    "lz4": _gzip,
    "gpg": _gpg,
    "gpg2": _gpg,
    "age": _gpg,
}
