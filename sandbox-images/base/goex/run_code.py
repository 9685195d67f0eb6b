"""Runs a program that uses services: offers the way out as a proxy, sets the variables, and becomes the program.

Rules: standard library only, and no secret. What it does is written in the job's `code.json`
(runtimes/code/environment.py). A shell or node program takes this process's place; a Python program runs in
this process, as `__main__`, and ends as it would have in an interpreter of its own: its threads are waited for, what
it left to be done at exit is done, and a traceback shows its frames alone.
"""

import builtins
import contextlib
import json
import os
import sys
import types

HERE = "/goex/bin"
JOB = "/goex/job"
PRELOAD = "/goex/lib/preload.txt"
RUN_BY = {"shell": ("/bin/bash", "bash"), "javascript": ("/usr/bin/node", "node")}  # path, and its own name


def prepare(preload=PRELOAD):
    """What can be done before there is a job: the proxy's process made (first, while it is small), the packages'
    folders, and the modules that `preload` names, loaded. Yields after each part, and may be left there."""
    yield shim_module().prepare()
    yield with_site()
    with contextlib.suppress(OSError), open(preload, encoding="utf-8") as file:
        for name in file.read().split():
            with contextlib.suppress(ImportError):  # a profile needn't have it
                yield __import__(name)


def with_site():
    """Do what the interpreter leaves out when it is started with -S."""
    if not hasattr(builtins, "exit"):
        import site

        site.main()


def shim_module():
    sys.path.insert(0, HERE)
    try:
        import shim
    finally:
        sys.path.remove(HERE)
    return shim


def main(job=JOB):
    with open(f"{job}/code.json", encoding="utf-8") as file:
        told = json.load(file)
    shim = shim_module()
    shim.start(told["port"], shim.SOCKET, everywhere=True)
    os.environ.update(told["env"])
    program = f"{job}/{told['program']}"
    if told["language"] == "python":
        with_site()
        run_python(program)
    path, name = RUN_BY[told["language"]]
    os.execv(path, [name, program])


def run_python(path):
    """Run the file as `python FILE` would, in this process. Raises SystemExit."""
    module = types.ModuleType("__main__")
    module.__file__ = path
    module.__builtins__ = builtins
    sys.modules["__main__"] = module
    sys.argv[:] = [path]
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # what was printed is there when the time is over
    code = 0
    try:
        with open(path, "rb") as file:
            exec(compile(file.read(), path, "exec", dont_inherit=True), module.__dict__)
    except SystemExit as end:
        code = exit_code(end)
    except BaseException as error:  # whatever it is, it is told as the interpreter tells it
        own = error.__traceback__ and error.__traceback__.tb_next
        sys.excepthook(type(error), error.with_traceback(own), own)
        code = 130 if isinstance(error, KeyboardInterrupt) else 1
    finish(module)
    raise SystemExit(code)


def exit_code(end):
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1


def finish(module):
    """What an interpreter does at its end: wait for threads, call what asked for it, let files be written."""
    import atexit
    import gc
    import io
    import threading

    threading._shutdown()
    atexit._run_exitfuncs()
    for one in gc.get_objects():  # in a cycle, what a file stands on could be closed before it
        if issubclass(type(one), (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)):
            with contextlib.suppress(OSError, ValueError):
                one.flush()
    if threading.active_count() == 1:  # others would miss their names
        module.__dict__.clear()
        gc.collect()


if __name__ == "__main__":
    main()
