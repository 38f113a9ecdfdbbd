# Loaded by runner-clock into every process of Python (PYTHONPATH). It gives the program a clock that starts where
# AGENT_START_TIME says and moves only by what the program itself does, and random numbers that follow from AGENT_SEED.
import os
import sys


def _install():
    import copyreg
    import datetime
    import hashlib
    import json
    import random
    import time
    import uuid

    env = os.environ
    path = env.get("AGENT_CLOCK_FILE", "")
    real = {n: getattr(time, n) for n in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep", "gmtime", "localtime", "ctime", "strftime", "asctime")}
    real_datetime, real_date, real_urandom = datetime.datetime, datetime.date, os.urandom

    # The process is named after what it was started with, and counted among those of the same name.
    with open("/proc/self/cmdline", "rb") as f:
        argv = f.read().split(b"\0")[1:]
    what = "python:" + hashlib.sha256(b"\0".join(argv)).hexdigest()[:16]
    state = {"name": what, "seq": 0, "now": 0, "next": 0, "counter": 0, "pool": b"", "pid": os.getpid()}
    reads = []

    def claim():
        n = 0
        while path:
            try:
                os.mkdir("%s.d/%s.%d" % (path, what, n))
                state["name"] = "%s.%d" % (what, n)
                return
            except FileExistsError:
                n += 1
            except OSError:
                return

    claim()
    bound, step = 100000, 10000

    def write(**tick):
        if not path:
            return
        n = state["seq"]
        state["seq"] += 1  # also of those that are too many: the number of the end tells how many there were
        if n >= bound and tick["op"] != "end":
            return
        line = json.dumps(dict(process=state["name"], seq=n, **tick), separators=(",", ":")) + "\n"
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                os.write(fd, line.encode())
            finally:
                os.close(fd)
        except OSError:
            pass  # the file is not there any more: nobody wants ticks

    def flush():
        if reads and state["pid"] == os.getpid():
            at = reads[:]
            del reads[:]
            write(op="read", at_ns=at)

    recorded = []

    def load():
        del recorded[:]
        if env.get("AGENT_CLOCK_RECORD"):
            try:
                with open(env["AGENT_CLOCK_RECORD"], encoding="utf-8") as f:
                    for line in f:
                        t = json.loads(line)
                        if t.get("process") == state["name"] and t.get("op") == "read":
                            recorded.extend(t["at_ns"])
            except (OSError, ValueError):
                pass  # without a record the clock goes as it went there, but for what came between

    load()
    start = 0
    try:
        text = env.get("AGENT_START_TIME", "").replace("Z", "+00:00")
        d = real_datetime.fromisoformat(text) - real_datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        start = (d.days * 86400 + d.seconds) * 10**9 + d.microseconds * 1000
    except (ValueError, TypeError):
        pass

    # What waits for real, asks a real clock: modules of the standard library that have to know when a wait is over.
    waiters = {"threading", "queue", "subprocess", "selectors", "asyncio", "concurrent", "multiprocessing", "socket", "socketserver", "ssl", "http", "urllib", "sched", "ftplib", "imaplib", "smtplib", "select", "_pyrepl"}

    def waits():
        return sys._getframe(2).f_globals.get("__name__", "").partition(".")[0] in waiters

    def read():
        state["now"] += step
        if state["next"] < len(recorded):
            state["now"] = recorded[state["next"]]
        state["next"] += 1
        reads.append(state["now"])
        if len(reads) == 256:
            flush()
        return state["now"]

    def clock(name, base, divide):
        given = real[name]

        def f():
            if waits():
                return given()
            ns = base + read()
            return ns / 1e9 if divide else ns

        f.__name__ = f.__qualname__ = name
        f.__doc__ = given.__doc__
        setattr(time, name, f)

    clock("time", start, True)
    clock("time_ns", start, False)
    for name in ("monotonic", "perf_counter"):
        clock(name, 0, True)
        clock(name + "_ns", 0, False)

    def advance(seconds):
        ns = int(seconds * 1e9)
        flush()
        write(op="sleep", for_ns=ns, at_ns=[state["now"]])
        state["now"] += ns

    def sleep(seconds):
        real["sleep"](seconds)
        if not waits():
            advance(max(seconds, 0))

    time.sleep = sleep
    for name in ("gmtime", "localtime", "ctime"):
        def of(seconds=None, _given=real[name]):
            return _given((start + read()) / 1e9 if seconds is None else seconds)
        setattr(time, name, of)
    time.strftime = lambda form, t=None: real["strftime"](form, time.localtime() if t is None else t)
    time.asctime = lambda t=None: real["asctime"](time.localtime() if t is None else t)

    # The classes stay what they are for all that looks at them: values are of the real ones.
    class OfDate(type):
        def __instancecheck__(cls, x):
            return isinstance(x, cls.__mro__[1])

        def __subclasscheck__(cls, c):
            return issubclass(c, cls.__mro__[1])

    class date(real_date, metaclass=OfDate):
        def __new__(cls, *a, **k):
            return real_date.__new__(real_date if cls is date else cls, *a, **k)

        @classmethod
        def today(cls):
            return real_date.fromtimestamp((start + read()) / 1e9)

    class datetime_(real_datetime, metaclass=OfDate):
        def __new__(cls, *a, **k):
            return real_datetime.__new__(real_datetime if cls is datetime_ else cls, *a, **k)

        @classmethod
        def now(cls, tz=None):
            of = real_datetime if cls is datetime_ else cls
            ns = start + read()
            d = real_datetime.fromtimestamp(ns // 10**9, tz).replace(microsecond=ns % 10**9 // 1000)
            return d if of is real_datetime else of.combine(d.date(), d.timetz())

        @classmethod
        def utcnow(cls):
            return cls.now(datetime.timezone.utc).replace(tzinfo=None)

        @classmethod
        def today(cls):
            return cls.now()

    for c, n in ((date, "date"), (datetime_, "datetime")):
        c.__name__ = c.__qualname__ = n
        c.__module__ = "datetime"
        setattr(datetime, n, c)
    copyreg.pickle(real_date, lambda d: (date, d.__reduce_ex__(2)[1]))
    copyreg.pickle(real_datetime, lambda d: (datetime_, d.__reduce_ex__(2)[1]))

    # Random numbers: SHA-256 of the seed, the process and a counter.
    seed = env.get("AGENT_SEED", "")

    def take(n):
        while len(state["pool"]) < n:
            state["pool"] += hashlib.sha256(("%s\n%s\n%d" % (seed, state["name"], state["counter"])).encode()).digest()
            state["counter"] += 1
        out, state["pool"] = state["pool"][:n], state["pool"][n:]
        return out

    def start_random():
        random.seed(int.from_bytes(take(32), "big"))

    plain = random.Random.__init__

    def init(self, x=None):  # without a seed of the program's own
        plain(self, int.from_bytes(take(32), "big") if x is None and type(self) is random.Random else x)

    random.Random.__init__ = init
    if env.get("AGENT_CRYPTO_RANDOM") != "real":
        os.urandom = random._urandom = take
        if hasattr(os, "getrandom"):
            os.getrandom = lambda n, flags=0: take(n)
        uuid._generate_time_safe = uuid._UuidCreate = None
        node = int.from_bytes(take(6), "big") | (1 << 40)
        uuid._node = node
        uuid.getnode = lambda: node
    start_random()

    def child():  # of a fork: a process of its own, that goes on from here
        del reads[:]
        state.update(pid=os.getpid(), seq=0, next=0, counter=0, pool=b"")
        claim()
        load()
        start_random()

    os.register_at_fork(before=flush, after_in_child=child)
    import atexit


    def end():
        flush()
        if state["pid"] == os.getpid():
            write(op="end", at_ns=[state["now"]])

    atexit.register(end)

    # asyncio waits by a real clock; a sleep that is over has moved the clock.
    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name != "asyncio.tasks":
                return None
            sys.meta_path.remove(self)
            import importlib.util
            spec = importlib.util.find_spec(name)
            load_ = spec.loader.exec_module

            def exec_module(m):
                load_(m)
                given = m.sleep

                async def sleep(delay, result=None):
                    x = await given(delay, result)
                    advance(max(delay, 0))
                    return x

                m.sleep = sleep

            spec.loader.exec_module = exec_module
            return spec

    sys.meta_path.insert(0, Finder())


def _next():
    # Another sitecustomize, which this one stands before.
    import importlib.util
    own = os.path.dirname(os.path.abspath(__file__))
    rest = [p for p in sys.path if os.path.abspath(p or ".") != own]
    import importlib.machinery
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec and spec.loader:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if os.environ.get("AGENT_DETERMINISTIC") == "1":
    _install()
_next()
