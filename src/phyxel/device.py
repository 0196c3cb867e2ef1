"""The one place that knows CPU threads and CUDA.

Warp runs a CPU kernel on one core. A kernel that takes `first: int` and starts with `i = first + wp.tid()` can be cut
into slices, one per CPU thread; CUDA gets the whole range. Two ways to run such kernels:

- `launch`: once, now (set-up, pictures);
- `Program`: a list of launches captured once and replayed often (a time step). On CUDA that is a CUDA graph; on the
  CPU it is one captured graph per thread with a spin barrier after every launch, replayed in C++ without Python
  in between. A barrier costs about a microsecond, a hand-over between Python threads 40 to 110.
"""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.errors import PhyxelError
from phyxel.progress import breathe, can_be_ended
from phyxel.structs import as_struct

KERNEL_OPTIONS = {
    "enable_backward": False,
    "cpu_compiler_flags": "-march=native -ffp-contract=fast -mllvm=-inline-threshold=9000",
}
"""Options of every module that holds kernels: `wp.set_module_options(KERNEL_OPTIONS)`.
No adjoints (half the compile time), and multiply-adds fused as CUDA fuses them."""

bools, int8s, int32s = (wp.array(dtype=kind) for kind in (wp.bool, wp.int8, wp.int32))
float32s, float64s = wp.array(dtype=wp.float32), wp.array(dtype=wp.float64)
vec2ds, vec3s, vec3ds, vec4ds = (wp.array(dtype=kind) for kind in (wp.vec2d, wp.vec3, wp.vec3d, wp.vec4d))
mat33ds = wp.array(dtype=wp.mat33d)
entries = wp.array(dtype=Any)
"""Arrays that kernels take, called by what they hold; `entries` are of what a launch brings."""


@contextmanager
def _stderr_without(unwanted: str) -> Iterator[None]:
    """Hold back what native code writes to stderr and pass it on, except lines that contain `unwanted`."""
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            held.seek(0)
            lines = held.read().decode(errors="replace").splitlines(keepends=True)
            sys.stderr.write("".join(line for line in lines if unwanted not in line))


@cache
def initialise() -> None:
    """Start Warp once, without its banner; a machine without a GPU is no cause for a warning."""
    wp.config.log_level = wp.LOG_ERROR
    with _stderr_without("NVIDIA CUDA driver"):
        wp.init()


def pick(name: str | wp.Device | None = None) -> wp.Device:
    """The device to compute on: `name`, else `$PHYXEL_DEVICE`, else CUDA where there is one, else the CPU."""
    initialise()
    if isinstance(name, wp.Device):
        return name
    name = name or os.environ.get("PHYXEL_DEVICE") or ("cuda" if wp.is_cuda_available() else "cpu")
    known = [device.alias for device in wp.get_devices()]
    if name not in known and not (name == "cuda" and len(known) > 1):  # Warp would print what the driver says
        there = ", ".join(known)
        raise PhyxelError(f'device = "{name}": not on this machine, which has {there}; leave it out for the fastest')
    return wp.get_device(name)


def as_vectors(positions: NDArray[np.floating], device: wp.Device) -> wp.array:
    """(N, 3) numbers as N vectors in single precision on the device."""
    return wp.array(np.ascontiguousarray(positions, np.float32), dtype=wp.vec3, device=device)


def synchronize(device: wp.Device) -> None:
    """Wait until the device has done all it was told to."""
    wp.synchronize_device(device)


def trim_memory() -> None:
    """Give freed memory back to the system. glibc keeps it: after building a body, as much again as the body takes."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library keeps less, and has no malloc_trim
            ctypes.CDLL(None).malloc_trim(0)


@cache
def thread_count() -> int:
    """CPU threads to split kernels over: `$PHYXEL_THREADS`, else the cores this process may use (at most 16)."""
    asked = os.environ.get("PHYXEL_THREADS")
    if asked:
        if not asked.isdigit() or int(asked) < 1:
            raise PhyxelError(f"PHYXEL_THREADS={asked}: give a whole number of at least 1")
        return int(asked)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, 16)


class Team:
    """Worker threads that each run one function when called for. Plain locks: waking one costs some 10 µs."""

    def __init__(self, size: int) -> None:
        self._start = [threading.Lock() for _ in range(size - 1)]
        self._done = [threading.Lock() for _ in range(size - 1)]
        self._work: Callable[[int], None] = lambda rank: None
        self._failure: BaseException | None = None
        self._busy = threading.Lock()
        for rank, (start, done) in enumerate(zip(self._start, self._done, strict=True), start=1):
            start.acquire()
            done.acquire()
            threading.Thread(target=self._serve, args=(rank, start, done), daemon=True).start()

    def _serve(self, rank: int, start: threading.Lock, done: threading.Lock) -> None:
        while True:
            start.acquire()
            try:
                self._work(rank)
            except BaseException as failure:
                self._failure = failure
            done.release()

    def run(self, work: Callable[[int], None]) -> None:
        """Call `work(rank)` on every thread, rank 0 on this one, and return when all are through."""
        with self._busy:
            self._work, self._failure = work, None
            for start in self._start:
                start.release()
            try:
                work(0)
            finally:
                for done in self._done:
                    done.acquire()
            if self._failure is not None:
                raise self._failure


@cache
def _team() -> Team:
    return Team(thread_count())


def _slices(count: int, parts: int) -> list[tuple[int, int]]:
    """(first, length) of `parts` nearly equal slices of range(count)."""
    edges = [count * part // parts for part in range(parts + 1)]
    return [(first, last - first) for first, last in itertools.pairwise(edges)]


BLOCK = 1 << 15
"""Of what can be ended, so much is launched at a time."""


def launch(kernel: wp.Kernel, count: int, inputs: Sequence[Any], device: wp.Device, split: bool = True) -> None:
    """Run `kernel(first, *inputs)` for i in range(count), over all CPU threads unless `split` is off."""
    if device.is_cuda or not split:
        breathe()
        if count:
            wp.launch(kernel, count, inputs=[0, *inputs], device=device)
        return
    blocks = -(-count // BLOCK) if can_be_ended() else 1  # one launch may take seconds
    for first, length in _slices(count, blocks) if count else ():
        breathe()
        _launch_split(kernel, first, length, inputs, device)


def _launch_split(kernel: wp.Kernel, start: int, count: int, inputs: Sequence[Any], device: wp.Device) -> None:
    """Run a kernel for i in range(start, start + count), over all CPU threads."""
    if thread_count() == 1:
        wp.launch(kernel, count, inputs=[start, *inputs], device=device)
        return
    # Recorded here, on one thread: loading a module is not safe from several at once.
    commands = [
        wp.launch(kernel, length, inputs=[start + first, *inputs], device=device, record_cmd=True) if length else None
        for first, length in _slices(count, thread_count())
    ]

    def work(rank: int) -> None:
        command = commands[rank]
        if command is not None:
            command.launch()

    _team().run(work)


@cache
def _blas() -> Any:
    """What sets how many threads BLAS takes; nothing where it is not installed."""
    if importlib.util.find_spec("threadpoolctl") is None:
        return None
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Let NumPy do with one thread: for the small matrices of a time step waking another takes longer than the work,
    and ten times longer where other programs use the cores."""
    controller = _blas()
    return nullcontext() if controller is None else controller.limit(limits=1, user_api="blas")


class Shared:
    """A small array that host and device both see: `host` is NumPy's, `array` is Warp's.

    On the CPU they are the same memory; on CUDA `push` and `pull` copy. Plain `assign` costs 50 µs a call."""

    def __init__(self, count: int, dtype: Any, device: wp.Device) -> None:
        self.array = wp.zeros(count, dtype=dtype, device=device)
        self.host = self.array.numpy()

    def push(self) -> None:
        """Let the device see what the host wrote."""
        if self.array.device.is_cuda:
            self.array.assign(self.host)

    def pull(self) -> NDArray[Any]:
        """What the device wrote."""
        if self.array.device.is_cuda:
            self.host = self.array.numpy()
        return self.host


class Flag:
    """Whether a kernel has found something: then it writes `array[0] = 1`. On CUDA it is read through memory that the
    device writes to without a detour."""

    def __init__(self, device: wp.Device) -> None:
        self.array = wp.zeros(1, dtype=wp.int32, device=device)
        self._read = wp.zeros(1, dtype=wp.int32, device="cpu", pinned=True) if device.is_cuda else self.array
        self._host = self._read.numpy()

    def lower(self) -> None:
        """Nothing is found as yet."""
        self.array.zero_()

    def raised(self) -> bool:
        """Whether anything was found."""
        if self._read is not self.array:
            wp.copy(self._read, self.array)
            wp.synchronize_stream(self.array.device)
        return bool(self._host[0])


def write(array: wp.array, first: int, values: Any) -> None:
    """array[first : first + len(values)] = values, from the host."""
    array[first : first + len(values)].assign(np.asarray(values))


@dataclass(frozen=True)
class Launch:
    """One kernel of a program: `kernel(first, *inputs)` for i in range(count)."""

    kernel: wp.Kernel
    count: int
    inputs: Sequence[Any]
    work: float = 1
    """what one index takes, in phyxels of a force pass"""

    @property
    def small(self) -> bool:
        """Whether it is done sooner by one thread than shared out."""
        return self.count * self.work < NODES_PER_THREAD


def run(one: Launch, device: wp.Device) -> None:
    """Run a kernel now, by one thread where that is sooner."""
    launch(one.kernel, one.count, one.inputs, device, split=not one.small)


def _arrays_of(holder: Any) -> dict[str, Any]:
    """What a dataclass of arrays holds, and what those in it hold, by name."""
    named: dict[str, Any] = {}
    for field in fields(holder):
        value = getattr(holder, field.name)
        named |= {field.name: value} | (_arrays_of(value) if is_dataclass(value) else {})
    return named


def over(kernel: wp.Kernel, count: int, *holders: Any, work: float = 1, **named: Any) -> Launch:
    """A launch of a kernel whose arguments are called as what they take: what is `named` here, or fields of these
    dataclasses of arrays, a dataclass in them as struct. Of arrays one by one Warp makes faster code than of structs,
    by a third in short loops."""
    known = {name: value for holder in holders for name, value in _arrays_of(holder).items()} | named
    taken = [known[argument.label] for argument in kernel.adj.args[1:]]
    return Launch(kernel, count, [as_struct(one) if is_dataclass(one) else one for one in taken], work)


def prepare(launches: Sequence[Launch], device: wp.Device) -> None:
    """Load the modules of all these kernels. A kernel generic in precision is compiled for the precision of its
    inputs; naming all launches of a module at once compiles it once."""
    for item in launches:
        if item.kernel.is_generic:
            item.kernel.add_overload(item.kernel.infer_argument_types([0, *item.inputs]))
    # It asks for blocks of the size that launches have; of another, all would be compiled a second time.
    wp.force_load(device, list({id(item.kernel.module): item.kernel.module for item in launches}.values()))


wp.set_module_options(KERNEL_OPTIONS)


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
#if !defined(_WIN32)
    extern int usleep(unsigned) __asm__("usleep");
#endif
    int* arrived = gate.data;
    int* round = gate.data + 32;  // a cache line of its own
    int now = __atomic_load_n(round, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(arrived, 1, __ATOMIC_ACQ_REL) == threads) {
        __atomic_store_n(arrived, 0, __ATOMIC_RELAXED);
        __atomic_add_fetch(round, 1, __ATOMIC_ACQ_REL);
    } else {
        for (int spins = 0; __atomic_load_n(round, __ATOMIC_ACQUIRE) == now; ++spins) {
#if defined(__x86_64__)
            __builtin_ia32_pause();  // lets a sibling thread of the same core work
#endif
#if !defined(_WIN32)
            if (spins > 2000) usleep(10);
#endif
        }
    }
#endif
""")
def _wait_for_all(gate: wp.array(dtype=wp.int32), threads: int):  # type: ignore[no-untyped-def, valid-type]
    ...


@wp.func_native("__builtin_assume(entries.strides[0] == sizeof(*entries.data));")
def packed(entries: wp.array(dtype=Any)):  # type: ignore[no-untyped-def, valid-type]
    """Tell the compiler that the entries of a struct's array lie one behind the other, as Warp tells it of arrays that
    are arguments themselves: 5 % of a loop over neighbours."""


@wp.kernel
def wait_for_all(gate: wp.array(dtype=wp.int32), threads: int):  # type: ignore[no-untyped-def, valid-type]
    """Spin barrier between CPU threads: gate[0] counts arrivals, gate[32] rounds.

    When the wait gets long the other thread has lost its core to another program: sleeping frees this core for it."""
    _wait_for_all(gate, threads)


@wp.func_native("""
#if !defined(__CUDA_ARCH__) && defined(__x86_64__)
    unsigned* kept = (unsigned*)gate.data + 33 + rank;
    if (flush) *kept = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(flush ? *kept | 0x8040u : *kept);
#endif
""")
def _flush_tiny(gate: wp.array(dtype=wp.int32), rank: int, flush: int):  # type: ignore[no-untyped-def, valid-type]
    ...


@wp.kernel
def flush_tiny(gate: wp.array(dtype=wp.int32), rank: int, flush: int):  # type: ignore[no-untyped-def, valid-type]
    """Let this CPU thread take numbers below 1e-38 for zero (flush = 1), or do as it did before (flush = 0).

    Ahead of an elastic wave displacements fade through such numbers, and arithmetic with them is fifty times slower.
    """
    _flush_tiny(gate, rank, flush)


NODES_PER_THREAD = 400
"""Fewest nodes that are worth a thread of their own: some 50 µs of work between two barriers."""
LONGEST_BLOCK = 16
"""Most repetitions of a program in one captured graph."""
WORN_IN = 64
"""Repetitions from which on blocks of several are worth being captured: programs of bodies that crack serve few."""


class Program:
    """Launches captured once and replayed as one. Array sizes and addresses are frozen; contents are not."""

    def __init__(self, launches: Sequence[Launch], device: wp.Device) -> None:
        self._device = device
        self._keep = list(launches)  # the graphs hold bare addresses
        self._launches = [item for item in launches if item.count]
        prepare([*self._launches, Launch(wait_for_all, 1, [])], device)
        self._flushes = not device.is_cuda
        biggest = int(max((item.count * item.work for item in self._launches), default=0))
        self._threads = 1 if device.is_cuda else max(1, min(thread_count(), biggest // NODES_PER_THREAD))
        self._gate = wp.zeros(64, dtype=wp.int32, device=device)
        self._graphs: dict[int, list[Any]] = {}
        self._repeated = 0

    def _capture(self, rank: int, times: int) -> Any:
        with wp.ScopedCapture(device=self._device) as capture:
            if self._flushes:
                wp.launch(flush_tiny, 1, inputs=[self._gate, rank, 1], device=self._device)
            launches = self._launches * times
            for item, after in itertools.zip_longest(launches, launches[1:]):
                sharers = 1 if item.small else self._threads
                first, length = _slices(item.count, sharers)[rank] if rank < sharers else (0, 0)
                if length:
                    wp.launch(item.kernel, length, inputs=[first, *item.inputs], device=self._device)
                # What one thread does after another small thing it did itself need not be waited for.
                if self._threads > 1 and not (item.small and after is not None and after.small):
                    wp.launch(wait_for_all, 1, inputs=[self._gate, self._threads], device=self._device)
            if self._flushes:
                wp.launch(flush_tiny, 1, inputs=[self._gate, rank, 0], device=self._device)
        return capture.graph

    def _graphs_of(self, times: int) -> list[Any]:
        """One graph per thread that runs the whole list `times` times."""
        if times not in self._graphs:
            self._graphs[times] = [self._capture(rank, times) for rank in range(self._threads)]
        return self._graphs[times]

    def run(self, times: int = 1) -> None:
        """Replay the whole list `times` times.

        In blocks of 16, 8, 4, 2, 1: between two calls of a graph the threads would wait for Python's one lock.
        """
        breathe()
        longest = LONGEST_BLOCK if self._repeated + times >= WORN_IN else 1
        self._repeated += times
        blocks = [longest] * (times // longest)
        blocks += [1 << bit for bit in reversed(range(longest.bit_length() - 1)) if times >> bit & 1]
        graphs = [self._graphs_of(block) for block in blocks]

        def replay(rank: int) -> None:
            if rank < self._threads:
                for graph in graphs:
                    wp.capture_launch(graph[rank])

        if self._threads == 1:
            replay(0)
        else:
            _team().run(replay)
