# Python imports this first, because `rehearse profile --torch-ops` put its folder first on
# PYTHONPATH. It does nothing but wait for PyTorch, and then makes way for the sitecustomize that
# would have run without us. Python 2 must be able to read it, too.
import os
import sys


def _wait_for_torch():
    if sys.version_info < (3, 8):
        return
    try:
        import rehearse_torch_hook

        rehearse_torch_hook.wait_for_torch()
    except Exception as error:  # whatever it is, the script must run
        sys.stderr.write("rehearse: PyTorch hook: %s\n" % (error,))


def _run_next():
    from importlib import util
    from importlib.machinery import PathFinder

    here = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if os.path.abspath(path or ".") != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_wait_for_torch()
if sys.version_info >= (3, 8):
    _run_next()  # what goes wrong in it, Python says as it does without us
