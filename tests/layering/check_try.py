"""Fails on a TRY after other arguments: its error would not destroy what was made of those (sim/base/result.h).

    check_try.py ROOT
"""

import pathlib
import re
import sys

FOLDERS = ("sim", "profiler", "models", "strategies", "cost", "cli", "tests")
# Comments, texts and directives, which may hold any bracket.
NO_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Za-z])'(?:\\.|[^'\\\n])*'|^[ \t]*#(?:\\\n|[^\n])*", re.S | re.M)
TOKEN = re.compile(r"\bTRY\(|[(\[{]|[)\]}]|[,;]")


class Bracket:
    def __init__(self):
        self.arguments = 0  # begun and ended
        self.is_block = False  # has a semicolon
        self.late = []  # where a TRY is after an argument


def late_tries(text):
    """The offsets of each TRY after an argument of the same call or braced list, or of one around it."""
    text = NO_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    found, open_brackets = [], [Bracket()]
    for token in TOKEN.finditer(text):
        what = token[0]
        if what == "TRY(":
            for bracket in open_brackets:
                if bracket.arguments > 0:
                    bracket.late.append((token.start(), len(open_brackets)))
        if what[-1] in "([{":
            open_brackets.append(Bracket())
        elif what in ")]}":
            if len(open_brackets) == 1:
                continue
            closed = open_brackets.pop()
            # What a block of statements holds comes after nothing outside the block.
            if closed.is_block:
                for bracket in open_brackets:
                    bracket.late = [late for late in bracket.late if late[1] <= len(open_brackets)]
            else:
                found += [at for at, _ in closed.late]
        elif what == ",":
            open_brackets[-1].arguments += 1
        else:
            open_brackets[-1].is_block = True
            open_brackets[-1].arguments = 0
    return sorted(set(found)), text


def main(root):
    bad = 0
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".cc", ".h") or not path.is_file():
                continue
            found, text = late_tries(path.read_text(encoding="utf-8"))
            for at in found:
                line = text.count("\n", 0, at) + 1
                print(f"{path.relative_to(root)}:{line}: a TRY after other arguments; take it before them")
                bad = 1
    return bad


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1])))
