"""Runs one line of Python in epicbox for each line that it reads, and says how many milliseconds that took.

It is run by the interpreter of epicbox's own environment (`make peers`), with the image as its argument.
"""

import sys
import time

import epicbox

CODE = b"print(sum(range(10)))\n"


def main() -> None:
    epicbox.configure(profiles=[epicbox.Profile("python", sys.argv[1])])
    for _ in sys.stdin:
        began = time.perf_counter_ns()
        files = [{"name": "main.py", "content": CODE}]
        result = epicbox.run("python", "python3 -I main.py", files=files, limits={"cputime": 10, "memory": 256})
        taken = (time.perf_counter_ns() - began) / 1e6
        assert result["stdout"] == b"45\n", result
        print(taken, flush=True)


if __name__ == "__main__":
    main()
