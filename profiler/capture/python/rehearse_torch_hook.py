"""Names what PyTorch does, for the recording, without a change to the script.

- operators, with shapes and autograd numbers: PyTorch's own emit_nvtx, entered on each thread at
  its first forward pass once CUDA runs (it starts CUDA itself, which must not come before the
  script does: processes that are forked later could not use it);
- modules: a range with the qualified name around each forward pass, domain "rehearse.module";
- steps: ranges "step N" from one step of the optimizer to the next, domain "rehearse.step".

Ranges go to the capture library directly. Whatever fails here is one line on stderr.
REHEARSE_TORCH_OPS=steps leaves all but the steps out, for runs to compare with.
"""

import atexit
import ctypes
import functools
import importlib
import importlib.util
import os
import sys
import threading
import weakref

_MODULES = b"rehearse.module"
_STEPS = b"rehearse.step"
_AFTER = b"after the last step"
_NONE = b"no step of an optimizer"

_push = None
_pop = None
_told = set()


def _say(text):
    """One line on stderr, once."""
    if text in _told:
        return
    _told.add(text)
    try:
        sys.stderr.write("rehearse: PyTorch hook: %s\n" % text)
    except Exception:
        pass


def _say_error(error):
    _say("%s: %s" % (type(error).__name__, error))


def _swallowing(function):
    """The function with every failure said instead of raised."""

    @functools.wraps(function)
    def guarded(*arguments, **named):
        try:
            return function(*arguments, **named)
        except Exception as error:
            _say_error(error)
            return None

    return guarded


def _load_library():
    """Binds the capture library's functions. False where this process is not recorded."""
    global _push, _pop
    path = os.environ.get("NVTX_INJECTION64_PATH")
    if not path or not os.environ.get("REHEARSE_CAPTURE_DIR"):
        return False
    library = ctypes.PyDLL(path)  # keeps the interpreter's lock: the calls take 50 ns
    push, pop = library.rehearse_capture_push, library.rehearse_capture_pop
    push.argtypes = pop.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    push.restype = pop.restype = ctypes.c_int
    _push, _pop = push, pop
    return True


# ---------------------------------------------------------------------------- waiting for torch


class _Finder:
    """Stands first in sys.meta_path until torch is imported; finds nothing itself."""

    _looking = threading.local()

    def find_spec(self, name, path=None, target=None):
        if name != "torch" or getattr(self._looking, "now", False):
            return None
        self._looking.now = True
        try:
            spec = importlib.util.find_spec("torch")
            if spec is not None and spec.loader is not None:
                _run_behind(spec.loader, self)
            return spec
        except Exception as error:
            _say("torch is not hooked: %s" % error)
            return None
        finally:
            self._looking.now = False


def _run_behind(loader, finder):
    """Has `loader` install the hooks when it has executed its module."""
    execute = loader.exec_module

    def exec_module(module):
        loader.__dict__.pop("exec_module", None)  # as it was, for anyone who inspects it
        execute(module)
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
        install(module)

    loader.exec_module = exec_module


def wait_for_torch():
    if "torch" in sys.modules:
        install(sys.modules["torch"])
    elif os.environ.get("NVTX_INJECTION64_PATH"):
        sys.meta_path.insert(0, _Finder())


# ---------------------------------------------------------------------------- modules, operators


def _compiling(torch):
    """Whether torch.compile is looking: to it the answer is a constant, so it sees no more of us."""
    for home in ("compiler", "_dynamo"):  # since PyTorch 2.3, since 2.1
        asked = getattr(getattr(torch, home, None), "is_compiling", None)
        if asked is not None:
            return asked
    return lambda: False


class _Operators:
    """PyTorch's names of operators, entered once per thread."""

    def __init__(self, torch):
        self._torch = torch
        self._thread = threading.local()
        self.asked = self.emitted = False
        profiler = torch.autograd.profiler
        for name in ("_prepare_profiler", "_enable_profiler"):
            if hasattr(profiler, name):
                setattr(profiler, name, self._giving_way(getattr(profiler, name)))

    def _giving_way(self, start):
        """A thread has one profiler: where the script starts its own, ours makes room for it."""

        @functools.wraps(start)
        def started(*arguments, **named):
            if not getattr(self._thread, "entering", False):
                self._leave()
            return start(*arguments, **named)

        return started

    @_swallowing
    def _leave(self):
        emitting = getattr(self._thread, "emitting", None)
        if emitting is not None:
            self._thread.emitting = None
            _say("the script starts a profiler of its own; operators have no names from there on")
            emitting.__exit__(None, None, None)

    def enter(self):
        thread = self._thread
        self.asked = True
        if getattr(thread, "tried", False) or not self._torch.cuda.is_initialized():
            return
        capturing = getattr(self._torch.cuda, "is_current_stream_capturing", None)
        if capturing is not None and capturing():  # emit_nvtx waits for the device, which ends it
            return
        thread.tried = thread.entering = True
        try:
            emitting = self._torch.autograd.profiler.emit_nvtx(record_shapes=True)
            emitting.__enter__()
            thread.emitting = emitting
            self.emitted = True
        finally:
            thread.entering = False


class _Thread(threading.local):
    def __init__(self):
        self.open = []  # modules whose forward pass runs
        self.names = {}  # of the modules below the outermost of them


class _Modules:
    """The hooks around each forward pass."""

    def __init__(self, torch, operators):
        self._operators = operators
        self._thread = _Thread()
        self._names = weakref.WeakKeyDictionary()  # per outermost module
        compiling, thread, push, pop = _compiling(torch), self._thread, _push, _pop
        module = torch.nn.modules.module

        # These run around every module: little is called from them.
        def before(called, inputs):
            if compiling():
                return
            try:
                running = thread.open
                if not running:
                    self._begin(thread, called)
                entry = thread.names.get(id(called))
                if entry is None or entry[0]() is not called:  # made after the outermost was named
                    entry = None, type(called).__name__.encode()
                running.append(called)
                push(_MODULES, entry[1])
            except Exception as error:
                _say_error(error)

        def after(called, inputs, output):
            if compiling():
                return
            try:
                running = thread.open
                if running and running[-1] is called:
                    running.pop()
                    pop(_MODULES, None)
                else:
                    self._leave_above(running, called)
            except Exception as error:
                _say_error(error)

        module.register_module_forward_pre_hook(before)
        try:
            module.register_module_forward_hook(after, always_call=True)  # also after exceptions
        except TypeError:
            module.register_module_forward_hook(after)

    def _begin(self, thread, root):
        self._operators.enter()
        thread.names = self._names_below(root)

    @staticmethod
    def _leave_above(running, called):
        """Leaves a module and those above it, which exceptions have left."""
        if not any(module is called for module in running):
            return
        while running:
            _pop(_MODULES, None)
            if running.pop() is called:
                break

    def close_all(self):
        """Ends what exceptions left open on this thread."""
        for _ in self._thread.open:
            _pop(_MODULES, None)
        self._thread.open.clear()

    def _names_below(self, root):
        names = self._names.get(root)
        if names is None:
            names = {}
            for name, module in root.named_modules():
                text = name or type(root).__name__
                names[id(module)] = (weakref.ref(module), text.encode(errors="replace"))
            self._names[root] = names
        return names


# ---------------------------------------------------------------------------- steps


class _Steps:
    """Ranges from the end of one optimizer step to the end of the next.

    The first optimizer that steps counts, on the thread that it steps on; when it is gone, the
    next one. The first range begins with the first forward pass.
    """

    def __init__(self, torch, modules):
        self._modules = modules
        self._number = 0
        self._owner = None  # process and thread
        self._optimizer = None
        compiling = _compiling(torch)

        def begin(called, inputs):
            if not compiling():
                self._begin()

        self._first = torch.nn.modules.module.register_module_forward_pre_hook(begin)
        optimizer = importlib.import_module("torch.optim.optimizer")  # torch.optim hides it
        register = getattr(optimizer, "register_optimizer_step_post_hook", None)
        if register is not None:
            register(lambda stepped, arguments, named: self.end(stepped))
        else:
            self._wrap(optimizer.Optimizer)
        atexit.register(self._close)

    def _wrap(self, base):
        """For versions without the hook: a class's step is wrapped with its first instance."""
        made = base.__init__

        @functools.wraps(made)
        def init(optimizer, *arguments, **named):
            made(optimizer, *arguments, **named)
            self._wrap_step(type(optimizer))

        base.__init__ = init

    @_swallowing
    def _wrap_step(self, kind):
        step = kind.step
        if getattr(step, "rehearse", False):
            return

        @functools.wraps(step)
        def stepped(optimizer, *arguments, **named):
            result = step(optimizer, *arguments, **named)
            self.end(optimizer)
            return result

        stepped.rehearse = True
        kind.step = stepped

    @_swallowing
    def _begin(self):
        first, self._first = self._first, None
        if first is not None:
            first.remove()
            self._open()

    def _open(self):
        self._owner = _here()
        _push(_STEPS, b"step %d" % self._number)

    @_swallowing
    def end(self, optimizer):
        counting = self._optimizer() if self._optimizer is not None else None
        if counting is None:
            self._optimizer = weakref.ref(optimizer)
        elif counting is not optimizer:
            return
        if self._owner is None or self._owner[0] != os.getpid():  # a forked process counts anew
            if self._first is not None:
                self._first.remove()
                self._first = None
            self._number = 0
            self._open()
            return
        if self._owner != _here():
            return
        if self._modules is not None:
            self._modules.close_all()
        _pop(_STEPS, None)
        self._number += 1
        self._open()

    @_swallowing
    def _close(self):
        if self._owner == _here():
            _pop(_STEPS, _AFTER if self._number > 0 else _NONE)


def _here():
    return os.getpid(), threading.get_ident()


@_swallowing
def install(torch):
    if _push is not None or not _load_library():
        return
    if os.environ.get("REHEARSE_TORCH_OPS") == "steps":
        _Steps(torch, None)
        return
    operators = _Operators(torch)
    _Steps(torch, _Modules(torch, operators))
    process = os.getpid()

    def tell():
        if operators.asked and not operators.emitted and os.getpid() == process:
            _say("no forward pass used CUDA: modules and steps have names, operators have none")

    atexit.register(tell)
