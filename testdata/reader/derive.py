#!/usr/bin/env python3
"""Makes the kernel lines of a raw stream as DERIVATION.md says: values, noise, pairing, order.

Usage: derive.py [--windows] [--canonical-pids] [--processes] FILE...    for each file a line `= FILE`, then kernel lines and
process records, and the lines of the layer process
"""

import ipaddress
import json
import sys

import noise

OPENS = {"open", "creat", "openat", "openat2", "open_by_handle_at", "io_uring_openat", "io_uring_openat2", "tiocgptpeer"}
SYSTEM = ("/lib/", "/lib32/", "/lib64/", "/usr/lib/")
NETWORK = {"connect": 2, "sendto": 6, "sendmsg": 7, "sendmmsg": 202, "bind": 203, "listen": 204}
ONE = {"execve": 201, "execveat": 201, "exec_check": 205, "unlink": 211, "rmdir": 212, "symlink": 217, "mkdir": 219, "truncate": 220,
       "ftruncate": 220, "file_blocked": 10, "chmod": 221, "chown": 222, "mknod": 223, "umount": 226, "io_uring_other": 240,
       "mount_setattr": 234, "open_tree": 235, "fspick": 236, "bpf_obj_pin": 242, "bpf_obj_get": 243, "kernel_file": 244}
TWO = {"rename": (213, 214), "link": (215, 216), "move_mount": (227, 228), "pivot_root": (229, 230)}
NAMED = {"mount": (224, 225), "setxattr": (231, 232), "removexattr": (233, 232)}  # a path, and a text that stays as it is
TEXT = {"fsconfig": 237, "fsmount": 238, "mq_open": 239, "mq_unlink": 241}
KINDS = {1: "openat", 2: "connect", 4: "exec", 10: "file_blocked", 20: "connect_blocked"}
ACCESS = ("read", "write", "read_write", "unknown")
FLAGS = (("create", 0o100), ("truncate", 0o1000), ("append", 0o2000), ("exclusive", 0o200))


def join(base, name, chroot):
    """A name joined to a base, component by component ("Values")."""
    absolute = name.startswith("/")
    if base is None and not absolute:
        return "/".join(p for p in name.split("/") if p not in ("", "."))
    out = (base or "/").rstrip("/")
    leading = True
    for part in name.split("/"):
        if part in ("", "."):
            continue
        if leading and part == ".." and absolute:
            continue
        if leading and part == ".." and not chroot:
            out = out[:out.rfind("/")] if "/" in out else out
            continue
        leading = False
        out += "/" + part
    return out or "/"


def lexical(e, name, base):
    """The second way to a path: text joined to a directory, or None."""
    if name not in e:
        return None
    text = e[name]
    if name == "user_path" and e.get("resolve", 0) & 0x10:
        text = "/" + text if base in e else text.lstrip("/")
    return join(e.get(base), text, "chroot" in e.get("marks", ()))


class Task:
    """One thread ("Tasks and processes"). The head of a process has what is known about it."""

    def __init__(self, pid, head=None):
        self.pid, self.head = pid, head or self
        self.made, self.lines, self.held, self.unfinished = [], [], [], []
        self.live, self.lost, self.start, self.ends = 0, False, None, []
        self.states, self.context = [], None
        self.numbers = set()  # that the process was told to have in its own pid namespace


    def number(self, e):
        """Keeps the number of a process in its own pid namespace ("Canonical order")."""
        if e.get("ns_pid") and e["pid_ns"]:
            self.numbers.add((e["ns_pid"], e["pid_ns"]))


class Tree:
    """All tasks, by what their ids mean at the moment, and in the order in which they were made."""

    def __init__(self):
        self.by_tid, self.newest, self.roots, self.tasks = {}, {}, [], []
        self.run = None  # mount namespace and root of the run

    def end(self, tid):
        task = self.by_tid.pop(tid, None)
        if task:
            task.head.live -= 1
        return task

    def make(self, pid, tid, head, maker):
        if old := self.end(tid):
            old.head.lost = True
        task = Task(pid, head)
        if not head:
            self.newest[pid] = task
        task.head.live += 1
        self.by_tid[tid] = task
        self.tasks.append(task)
        maker.append(task)
        return task

    def exec(self, e):
        task = self.by_tid.get(e["old_tid"])
        if task and task.pid == e["pid"] and e["old_tid"] != e["tid"]:
            del self.by_tid[e["old_tid"]]
            self.end(e["tid"])
            self.by_tid[e["tid"]] = task

    def acting(self, e):
        task = self.by_tid.get(e["tid"])
        if task and task.pid == e["pid"]:
            return task
        head = self.newest.get(e["pid"])
        if not head or not head.live:
            return self.make(e["pid"], e["tid"], None, self.roots)
        return self.make(e["pid"], e["tid"], head, head.made)

    def fork(self, task, e):
        child = self.make(e["child_pid"], e["child_tid"], task.head if task.pid == e["child_pid"] else None, task.made)
        if child.head is child:
            child.start = e["ktime_ns"]
            child.number(e)
            self.state(child, "start", e)

    def state(self, head, by, e, **more):
        """Keeps a state of a process ("Processes and their context")."""
        context = (e["uid"], e["gid"], e["mount_ns"], e.get("root", "?")) if "uid" in e else None
        if context and by == "exec" and not self.run:
            self.run = context[2:]
        if by != "call" or context != head.context:
            head.context = context
            head.states.append(({"by": by, **{k: v for k, v in more.items() if v}}, context))

    def exit(self, e):
        self.end(e["tid"]).head.ends.append(e["ktime_ns"])

    def walk(self):
        """Every process in canonical order: its head, its depth, and its threads in their order."""
        todo = [(root, 0) for root in reversed(self.roots)]
        while todo:
            head, depth = todo.pop()
            threads, stack = [], [head]
            while stack:
                threads.append(stack.pop())
                stack += [c for c in reversed(threads[-1].made) if c.head is head]
            yield head, depth, threads
            todo += [(c, depth + 1) for c in reversed([c for t in threads for c in t.made if c.head is not head])]


def endpoint(text):
    """An IP address and a port, or None."""
    host, colon, port = (text or "").rpartition(":")
    try:
        ip = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None
    return (ip, int(port)) if colon and port.isdigit() else None


def same_address(call, hook):
    if not call or not hook or call == hook:
        return bool(call) and call == hook
    a, b = endpoint(call), endpoint(hook)
    plain = lambda ip: getattr(ip, "ipv4_mapped", None) or ip
    return bool(a and b) and a[1] == b[1] and (plain(a[0]) == plain(b[0]) or plain(a[0]).is_unspecified)


def same_unix(call, hook):
    if not call or not hook or not call.startswith(("unix:/", "unix:detached:/", "unix:unreachable:/")) or not hook.startswith("unix:") or hook[5:6] in ("", "@"):
        return False
    end = join(None, hook[5:], False)
    if hook[5] == "/":
        return call.endswith(end)
    last = end.rpartition("/")[2]
    return last in ("", "..") or call.endswith("/" + last)


def passes(op):
    """The hook that an operation passes."""
    return "sendmsg" if op in ("sendto", "sendmmsg") else op


def marked(e, name):
    return name in e.get("marks", ())


def agrees(e, held):
    """Whether the addresses of a call and of a held record agree, by either rule."""
    return any(agree(e.get("addr"), held.get("addr")) for agree in (same_address, same_unix))


def match_one(e, held):
    return passes(e["op"]) == passes(held["op"]) and agrees(e, held)


def ran_in(held):
    """What the hook of a held record ran in."""
    return "request" if marked(held, "io_uring") else "other" if marked(held, "unpaired") else "call"


def match(task, e, where):
    """The place of the held record, of a hook that ran there, that an event matches ("Pairing of hook and call")."""
    for agree in (same_address, same_unix):
        for i, held in enumerate(task.held):
            if ran_in(held) == where and passes(e["op"]) == passes(held["op"]) and agree(e.get("addr"), held.get("addr")):
                return i
    return None


def hidden(e):
    """Whether a call cannot have come to the hook, by what its record lacks."""
    if "addr" in e:
        return False
    if marked(e, "addr_fault"):
        return e.get("ret") == -14
    return e["op"] == "connect" and ("family" in e or marked(e, "of_socket"))


def twin(task, e):
    """The place of what the hook saw of this call, or None."""
    if hidden(e):
        return None
    if e["op"] == "sendmmsg":
        i = match(task, e, "call")
        if i is None and marked(e, "hooked"):
            i = match(task, e, "other")
            if i is not None and task.held[i].get("socket") != e.get("socket"):
                i = None
        return i
    for i in reversed(range(len(task.held))):
        held = task.held[i]
        if ran_in(held) == "call" and passes(held["op"]) == passes(e["op"]):
            other = "socket" in held and held["socket"] != e.get("socket") and ("socket" in e or not marked(e, "changed"))
            return None if other and passes(e["op"]) == "sendmsg" else i
    return None


def kernels_copy(e, held):
    """Gives a call the address that the hook saw, where its own is not the kernel's."""
    if marked(e, "of_socket"):
        own = held.get("socket", e.get("socket")) == e.get("socket", held.get("socket"))
        if not own:
            e["marks"] = [m for m in e["marks"] if m != "of_socket"]
    else:
        own = agrees(e, held)
    if not own and "addr" in held:
        e["addr"] = held["addr"]


def of_call(e):
    """Whether an event is the end of a system call, an exec, or a silent request."""
    return e["op"] not in ("fork", "exit", "move", "connect_blocked", "file_blocked", "io_uring_other", "loader", "context") and (silent(e) or e.get("source") not in ("cgroup", "io_uring") and "io_uring" not in e.get("marks", ()))


def silent(e):
    """Whether it is of a request of io_uring that wants no completion on success."""
    return "silent" in e.get("marks", ())


def values(e):
    """What tells one call from another."""
    if e["op"] in NETWORK:
        return e.get("addr"), None
    first = e["path"] if "path" in e else lexical(e, "user_path", "base")
    if e["op"] in NAMED or e["op"] in TEXT:
        return first, e.get("user_path2")
    return first, e["path2"] if "path2" in e else lexical(e, "user_path2", "base2")


def same_call(unfinished, e):
    if unfinished["op"] != e["op"] or silent(unfinished) != silent(e) or any(unfinished.get(k, 0) != e.get(k, 0) for k in ("flags", "mode", "resolve")):
        return False
    if e["op"] in NETWORK and not silent(e):
        if unfinished.get("socket", 0) != e.get("socket", 0):
            return False
        if e["op"] == "connect" and not e.get("socket") and e.get("ret", 0) < 0 and "addr" in e:
            return False
    if e["op"] not in OPENS and marked(e, "of_socket") and agrees(unfinished, e):
        return True
    return e["op"] in OPENS and "path" in e or values(unfinished) == values(e)


class Derivation:
    """Kernel lines of one raw stream, event by event."""

    def __init__(self):
        self.tree = Tree()
        self.awaited = {}  # attempts to connect, by socket

    def event(self, e):
        op = e["op"]
        if op == "connect_end":
            self.ended(e)
            return
        if op == "exec" and "old_tid" in e:
            self.tree.exec(e)
        task = self.tree.acting(e)
        if op in NETWORK and e.get("source") == "cgroup":
            task.held.append({k: v for k, v in e.items() if k != "ret"})
            self.attempt(task.held[-1])
            if len(task.held) > 1024:
                oldest = task.held[0]
                alike = [held for held in task.held[1:] if marked(held, "io_uring") == marked(oldest, "io_uring")]
                if oldest["op"] == "connect" and any(match_one(oldest, held) for held in alike):
                    del task.held[0]
                else:
                    self.release(task, 1)
            return
        if op in ("connect_blocked", "file_blocked"):
            self.refuse(task, e)
        elif op in NETWORK and e.get("source") == "io_uring":
            for t in self.tree.tasks:
                while t.pid == e["pid"] and (i := match(t, e, "request")) is not None:
                    del t.held[i]
        else:
            self.resolve(task, e)
        if op == "fork":
            self.tree.fork(task, e)
        elif op == "context":
            self.tree.state(task.head, "call", e)
        elif op == "exit":
            self.settle(task)
            self.tree.exit(e)
        elif marked(e, "hooked") and not marked(e, "unproven") and e.get("ret", -1) >= 0:
            pass  # the kernel did not use the address
        elif of_call(e):
            self.call(task, e)
        elif op != "move":
            self.lines(task, e)

    def refuse(self, task, e):
        op = e["op"] == "connect_blocked" and {"connect": "connect", "send": "sendmsg"}.get(e.get("hook"))
        for held in reversed(task.held):
            if held["op"] == op and same_address(e.get("addr"), held.get("addr")):
                held["refused"] = True
                return

    def resolve(self, task, e):
        if e["op"] == "exit":
            self.release(task, len(task.held))
        elif e["op"] in NETWORK and task.held:
            left = [held for held in task.held if not marked(held, "io_uring") and held.get("left", e["ktime_ns"]) != e["ktime_ns"]]
            task.held = left + [held for held in task.held if not any(held is other for other in left)]
            self.release(task, len(left))
            i = twin(task, e)
            if i is not None:
                self.returned(e, task.held[i])
                kernels_copy(e, task.held[i])
                e["marks"] = [m for m in e.get("marks", ()) if m != "hooked"]
                del task.held[i]
            if e["op"] == "sendmmsg":
                for held in task.held:
                    held.setdefault("left", e["ktime_ns"])
            else:
                of_calls = [held for held in task.held if not marked(held, "io_uring")]
                task.held = of_calls + [held for held in task.held if marked(held, "io_uring")]
                self.release(task, len(of_calls))

    def attempt(self, held):
        """Begins an attempt of a socket ("Results of pending connects")."""
        if held["op"] != "connect" or not held.get("socket"):
            return
        self.awaited.pop(held["socket"], None)
        if not marked(held, "io_uring") and len(self.awaited) < 1 << 16:
            held["tried"] = self.awaited[held["socket"]] = {}

    def returned(self, e, held):
        """The end of a call: whether the attempt of its twin goes on."""
        tried = held.get("tried")
        if tried is None:
            return
        if (e.get("ret") == -115 or "ret" in e and marked(e, "deferred")) and not marked(e, "unproven") and e.get("socket", held["socket"]) in (0, held["socket"]):
            e["attempt"] = tried
        elif self.awaited.get(held["socket"]) is tried:
            del self.awaited[held["socket"]]

    def ended(self, e):
        tried = self.awaited.pop(e.get("socket", 0), None)
        if tried is not None and -4095 <= e.get("ret", 1) <= 0:
            tried["connect_result"] = e["ret"]

    def release(self, task, n):
        for held in task.held[:n]:
            if not held.get("refused") and not self.told_silently(held):
                self.line(task, NETWORK[held["op"]], held, held.get("addr"))
        del task.held[:n]

    def told_silently(self, held):
        return any(silent(u) and match_one(u, held) for t in self.tree.tasks if t.pid == held["pid"] for u in t.unfinished)

    def call(self, task, e):
        """A call, and the unfinished one that it ends, if there is one ("Calls that start over")."""
        proved = e["op"] not in (*OPENS, "exec", "execve", "execveat") or silent(e) or marked(e, "started_over")
        for u in reversed(task.unfinished) if proved else ():
            if e["op"] == "exec" and u["op"] in ("execve", "execveat") or same_call(u, e):
                task.unfinished.remove(u)
                break
        if e["op"] == "exec" or "ret" in e or marked(e, "unproven"):
            self.lines(task, e)
        else:
            task.unfinished.append(e)

    def settle(self, task):
        for e in task.unfinished:
            self.lines(task, e)
        task.unfinished = []

    def lines(self, task, e):
        op = e["op"]
        value, joined = e.get("path"), "path" not in e
        if joined:
            value = lexical(e, "user_path", "base")
        if op in OPENS:
            if not noise.leaves_out(e, value, joined):
                self.line(task, 1, e, value)
        elif op == "exec":
            script = lexical(e, "user_path", "base") if "interp" in e else None
            self.line(task, 4, e, e["interp"] if joined and "interp" in e else value)
            task.head.number(e)
            self.tree.state(task.head, "exec", e, file=e["interp"] if joined and "interp" in e else value, script=script, arguments=e.get("arguments"))
            if script is not None:
                self.line(task, 200, e, script)
        elif op == "loader":
            if "path" not in e or noise.DOUBTFUL & set(e.get("marks", ())) or not e["path"].startswith(SYSTEM):
                self.line(task, 206, e, e.get("path"))
        elif op in TWO:
            self.line(task, TWO[op][0], e, value)
            self.line(task, TWO[op][1], e, e["path2"] if "path2" in e else lexical(e, "user_path2", "base2"))
        elif op in NAMED:
            self.line(task, NAMED[op][0], e, value)
            self.line(task, NAMED[op][1], e, e.get("user_path2"))
        elif op in TEXT:
            self.line(task, TEXT[op], e, e.get("user_path2"))
        elif op in NETWORK or op == "connect_blocked":
            self.line(task, NETWORK.get(op, 20), e, e.get("addr"))
        else:
            self.line(task, ONE[op], e, None if op == "io_uring_other" else value)

    def line(self, task, event, e, value):
        """Gives a line to a task ("Numbers"), without what its place decides."""
        line = {"event_type": event, "kind": KINDS.get(event, "event_%d" % event), "value": value}
        if event in (10, 20):
            line["cgroup_id"] = e["cgroup_id"]
            if event == 20 and endpoint(value):
                host, _, port = value.rpartition(":")
                line["network_destination"], line["network_port"] = host.strip("[]"), int(port)
            if "rule" in e:
                line["rule_id"] = e["rule"]
        if event == 1:
            line.update((key, e[key]) for key in ("flags", "mode", "resolve") if e.get(key) or key != "resolve" and key in e)
        if event in (213, 214) and e.get("flags"):
            line["flags"] = e["flags"]
        if "ret" in e and not marked(e, "unproven"):
            line["return_value"] = e["ret"]
        if event == 1 and "flags" in e:
            line["access_mode"] = ACCESS[e["flags"] & 3]
            line["operation_flags"] = [name for name, bit in FLAGS if e["flags"] & bit]
            if not line["operation_flags"]:
                del line["operation_flags"]
        if "unproven" in e.get("marks", ()):
            line["status"] = "unproven"
        elif "ret" in e and not marked(e, "deferred") and not (e["op"] == "connect" and e["ret"] == -115):
            line["status"] = "success" if e["ret"] >= 0 else "error"
        if "changed" in e.get("marks", ()):
            line["doubt"] = "changed"
        task.lines.append((line, e["ktime_ns"], e["attempt"] if "attempt" in e and event == 2 else {}))

    def records(self, run_id, windows, canonical):
        """The kernel lines in canonical order, with windows also the process records."""
        for task in self.tree.tasks:
            self.release(task, len(task.held))
        for task in self.tree.tasks:
            self.settle(task)
        seq, above = 0, []
        for number, (head, depth, threads) in enumerate(self.tree.walk(), 1):
            process = {"schema": "runner.process.v0", "run_id": run_id, "pid": number if canonical else head.pid,
                       "kernel_pid": head.pid, "depth": depth}
            if head.start:
                process["start_ns"] = head.start
            if head.ends and not head.lost and not head.live:
                process["end_ns"] = max(head.ends)
            if len(head.numbers) == 1:
                process["ns_pid"], process["pid_ns"] = list(head.numbers)[0]
            above[depth:] = [process]
            for line, ktime, result in (l for t in threads for l in t.lines):
                line = {**line, **result}
                if windows:
                    yield from (p for p in above if p)
                    above = [None] * len(above)
                    line = {**line, "ktime_ns": ktime}
                yield {"schema": "assay.runner.kernel_event.v0", "run_id": run_id, "seq": seq, "pid": process["pid"], **line}
                seq += 1


    def processes(self, run_id):
        """The lines of the layer process, without its bounds."""
        numbers, spaces, run = {}, {}, self.tree.run or (0, "")
        for number, (head, depth, threads) in enumerate(self.tree.walk(), 1):
            numbers[depth] = number
            states = []
            for state, context in head.states:
                if context:
                    uid, gid, space, root = context
                    state = {**state, "uid": uid, "gid": gid}
                    if space != run[0]:
                        state["mount_namespace"] = spaces.setdefault(space, len(spaces) + 1)
                    if root != (run[1] if space == run[0] else "/"):
                        state["root"] = root
                if "arguments" in state:
                    state["arguments"] = state.pop("arguments")  # the last key
                states.append(state)
            yield {"schema": "assay.runner.process_event.v0", "run_id": run_id, "seq": number - 1, "process": number,
                   **({"parent": numbers[depth - 1]} if depth else {}), "lines": sum(len(t.lines) for t in threads), "states": states}


def derive(path, windows, canonical, processes):
    d, run_id = Derivation(), None
    with open(path, encoding="utf-8") as stream:
        for text in stream:
            e = json.loads(text)
            if e["schema"] == "runner.raw_event.v0":
                run_id = e["run_id"]
                d.event(e)
            elif "capture_mount_ns" in e.get("facts", ()) and e["facts"]["supervisor"] != "exec":
                d.tree.run = (int(e["facts"]["capture_mount_ns"]), "/")
    for record in list(d.records(run_id, windows, canonical)) + (list(d.processes(run_id)) if processes else []):
        print(json.dumps(record, ensure_ascii=False, separators=(",", ":")))


if __name__ == "__main__":
    for name in [a for a in sys.argv[1:] if not a.startswith("--")]:
        print("=", name)
        derive(name, "--windows" in sys.argv, "--canonical-pids" in sys.argv, "--processes" in sys.argv)
