"""A provider of afield in Python: the files and plain processes of the machine
on which it runs, at contract level. It needs nothing but the standard library.

A provider of another world keeps Connection and Call, and replaces Files and
Processes.
"""

import base64
import bisect
import codecs
import collections
import ctypes
import errno
import fcntl
import grp
import hashlib
import itertools
import json
import os
import pwd
import secrets
import select
import signal
import stat
import struct
import subprocess
import sys
import threading
import time

ID, VERSION = "pyplugin", "1.0.0"  # what the manifest says, too
HELLO, CALL, DATA, WINDOW, EVENT, END, CANCEL, CLOSE, PING, PONG, LOG, GOAWAY = range(1, 13)
MAX_BODY, MAX_DATA, OUR_WINDOW = 1 << 20, 1 << 16, 1 << 18
OFFER = {"name": "machine", "services": ["fs", "exec"], "level": "contract", "features": ["before", "edits"]}
SAID = {"protocol": 1, "plugin": ID, "version": VERSION, "providers": [OFFER], "window": OUR_WINDOW, "maxStreams": 256}


# ---- the connection -------------------------------------------------------


class Fault(Exception):
    """An error of a call: one of the protocol's codes, and a sentence."""

    def __init__(self, code, message, hint="", path=""):
        super().__init__(message)
        self.code, self.message, self.hint, self.path = code, message, hint, path


class Broken(Exception):
    """The caller broke the protocol; the connection ends."""


class Refused(Exception):
    """The caller wants no more of a port, or nothing at all."""


class Connection:
    """One connection: frames in, frames out. The reader never waits for a
    consumer; writers take turns."""

    def __init__(self, source, sink):
        self.source, self.sink = source, sink
        self.turn, self.lock = threading.Lock(), threading.Lock()
        self.calls, self.last, self.window, self.greeted = {}, 0, 1 << 14, False
        self.worlds, self.running = {}, {}

    def send(self, kind, stream=0, body=b"", port=0, fin=False):
        frame = struct.pack(">IIBBH", len(body), stream, kind, port, 1 if fin else 0) + body
        with self.turn:
            view = memoryview(frame)
            while view:
                view = view[os.write(self.sink, view):]

    def send_json(self, kind, value, stream=0):
        self.send(kind, stream, json.dumps(value).encode())

    def exactly(self, n):
        parts = []
        while n:
            part = os.read(self.source, min(n, MAX_BODY))
            if not part:
                raise EOFError
            parts.append(part)
            n -= len(part)
        return b"".join(parts)

    def serve(self):
        """Serves until the input ends or the caller breaks the protocol."""
        self.send_json(HELLO, SAID)
        try:
            while True:
                length, stream, kind, port, flags = struct.unpack(">IIBBH", self.exactly(12))
                if length > MAX_BODY or kind == 0 or GOAWAY < kind < 32 or kind < 32 and port > 2:
                    raise Broken("a frame of kind %d and %d bytes" % (kind, length))
                body = self.exactly(length)
                if kind < 32:
                    self.take(kind, stream, port, bool(flags & 1), body)
        except EOFError:
            pass
        except Broken as e:
            self.send_json(GOAWAY, {"code": "PLUGIN_PROTOCOL", "message": str(e)})
        with self.lock:
            calls = list(self.calls.values())
        for call in calls:
            call.abandon()
        for world in list(self.worlds.values()):
            world.processes.end_all()

    def take(self, kind, stream, port, fin, body):
        if kind == HELLO:
            hello = json.loads(body)
            if self.greeted or hello.get("protocol") != 1:
                raise Broken("HELLO")
            self.greeted, self.window = True, hello.get("window", 1 << 14)
        elif not self.greeted:
            raise Broken("a frame before HELLO")
        elif kind == PING:
            self.send(PONG, 0, body)
        elif kind == CALL:
            self.accept(stream, body)
        elif stream:
            with self.lock:
                call = self.calls.get(stream)
            if call:
                call.take(kind, port, fin, body)
            elif stream % 2 == 0 or stream > self.last:
                raise Broken("a frame on stream %d, which does not exist" % stream)

    def accept(self, stream, body):
        if stream % 2 == 0 or stream <= self.last or len(self.calls) >= 256:
            raise Broken("CALL on stream %d" % stream)
        self.last = stream
        message = json.loads(body)
        call = Call(self, stream, message["m"], message.get("p") or {}, message.get("pn", 0))
        with self.lock:
            self.calls[stream] = call
        threading.Thread(target=call.run, daemon=True).start()

    def forget(self, call):
        with self.lock:
            self.calls.pop(call.id, None)


class Call:
    """One call under way."""

    def __init__(self, connection, stream, method, params, more):
        self.connection, self.id, self.method, self.params, self.more = connection, stream, method, params, more
        self.changed = threading.Condition()
        self.pieces, self.held, self.owed, self.fin = collections.deque(), 0, 0, False
        self.credit = {1: connection.window, 2: connection.window}
        self.closed, self.cancelled, self.ended = set(), False, False
        self.on_change = []

    def take(self, kind, port, fin, body):
        with self.changed:
            if kind == DATA:
                if self.fin or port or self.held + self.owed + len(body) > OUR_WINDOW:
                    raise Broken("DATA on a closed port, or beyond its credit")
                self.fin = fin
                if body:
                    self.pieces.append(body)
                    self.held += len(body)
            elif kind == WINDOW and port in self.credit:
                self.credit[port] += struct.unpack(">I", body)[0]
            elif kind == CLOSE:
                self.closed.add(port)
            elif kind == CANCEL:
                self.cancelled = True
            self.changed.notify_all()
        for f in self.on_change:
            f()

    def abandon(self):
        """The connection is gone."""
        with self.changed:
            self.cancelled, self.fin = True, True
            self.closed.update((1, 2))
            self.changed.notify_all()
        for f in self.on_change:
            f()

    def read(self, limit=MAX_DATA):
        """Gives content of the input port, b"" at its end, and its credit back."""
        with self.changed:
            while not self.pieces and not self.fin and not self.cancelled and not self.ended:
                self.changed.wait()
            if not self.pieces:
                if not self.fin:
                    raise Refused
                return b""
            piece = self.pieces.popleft()
            if len(piece) > limit:
                self.pieces.appendleft(piece[limit:])
                piece = piece[:limit]
            self.held -= len(piece)
            self.owed += len(piece)
            owed, give = self.owed, self.owed >= OUR_WINDOW // 4 and not self.fin
            if give:
                self.owed = 0
        if give:
            self.connection.send(WINDOW, self.id, struct.pack(">I", owed))
        return piece

    def write(self, port, data):
        """Sends content, as the caller's credit allows."""
        view = memoryview(data)
        while view:
            with self.changed:
                while not self.credit[port] and port not in self.closed and not self.cancelled:
                    self.changed.wait()
                if port in self.closed or not self.credit[port]:
                    raise Refused
                n = min(len(view), self.credit[port], MAX_DATA)
                self.credit[port] -= n
            self.connection.send(DATA, self.id, bytes(view[:n]), port)
            view = view[n:]

    def finish(self, port):
        if port not in self.closed:
            self.connection.send(DATA, self.id, b"", port, True)

    def emit(self, name, **fields):
        self.connection.send_json(EVENT, dict(fields, e=name), self.id)

    def check(self):
        """Ends a call that was cancelled."""
        if self.cancelled:
            raise Fault("FS_ABORTED", self.method + " was cancelled")

    def run(self):
        try:
            if self.more:
                self.params = json.loads(b"".join(exactly(self, self.more)))
            answer = {} if (result := dispatch(self)) is None else result
        except Fault as e:
            answer = failure(e.code, e.message, self.method, e.hint, e.path)
        except Refused:
            answer = failure("FS_ABORTED", "%s was cancelled" % self.method, self.method)
        except OSError as e:
            if self.connection.sink_lost(e):
                return
            answer = failure("FS_IO_ERROR", str(e), self.method)
        except Exception as e:  # a defect of ours
            print(repr(e), file=sys.stderr)
            answer = failure("internal", repr(e), self.method)
        with self.changed:
            self.ended = True
            self.changed.notify_all()
        self.connection.forget(self)
        try:
            self.connection.send_json(END, answer, self.id)
        except OSError:
            pass


Connection.sink_lost = lambda self, e: e.errno == errno.EPIPE and not self.calls


def exactly(call, n):
    while n:
        piece = call.read(n)
        if not piece:
            raise Fault("BACKEND_PROTOCOL", "the content did not arrive whole")
        n -= len(piece)
        yield piece


def failure(code, message, method, hint="", path=""):
    op = {"lstat": "stat"}.get(method.split(".")[-1], method.split(".")[-1])
    clipped = message.replace("\n", " ").encode("utf-8", "replace")[:1024].decode("utf-8", "ignore")
    return {"error": {"code": code, "message": clipped, "op": op, "hint": hint, "path": path, "retry": "no"}}


# ---- text that need not be UTF-8 ------------------------------------------


def text(v):
    """Takes a string or {"b64": …}; bytes that are no text become surrogates."""
    raw = base64.b64decode(v["b64"]) if isinstance(v, dict) else (v or "").encode("utf-8", "surrogateescape")
    return raw.decode("utf-8", "surrogateescape")


def octets(s):
    return s.encode("utf-8", "surrogateescape")


def wire(s):
    try:
        s.encode("utf-8")
        return s
    except UnicodeEncodeError:
        return {"b64": base64.b64encode(octets(s)).decode()}


def quote(s):
    return json.dumps(s.encode("utf-8", "replace").decode(), ensure_ascii=False)


# ---- dispatch -------------------------------------------------------------


class World:
    """What world.open opens: files and processes with one default directory."""

    def __init__(self, cwd):
        self.cwd = cwd
        self.files, self.processes = Files(cwd), Processes()
        self.ready = threading.Event()


def dispatch(call):
    method, connection = call.method, call.connection
    if method == "describe":
        return SAID
    if method == "world.open":
        return open_world(call)
    if method == "world.ping":
        return {}
    if method in ("exec.terminate", "exec.wait"):
        return about(call)
    world = connection.worlds.get(call.params.get("world"))
    if world is None:
        raise Fault("world-gone", "there is no world %s on this connection" % quote(str(call.params.get("world"))))
    if method.startswith("fs."):
        serve = getattr(world.files, method[3:], None)
        if method[3:] in ("resolve", "stat", "lstat", "read", "list", "write", "edit"):
            return serve(call, call.params)
    if method == "exec.which":
        return {"path": wire(which(text(call.params["command"]), environment(call.params), world.cwd))}
    if method == "exec.spawn":
        return world.processes.spawn(call, call.params)
    raise Fault("UNSUPPORTED", "unknown method " + method)


def open_world(call):
    p, connection = call.params, call.connection
    cwd = text(p.get("cwd")) or (p.get("config") or {}).get("cwd") or os.environ.get("HOME") or "/"
    if not os.path.isdir(octets(cwd)):
        raise Fault("CONFIG_INVALID", "there is no directory %s" % quote(cwd))
    world = World(cwd)
    if connection.worlds.setdefault(p.get("world"), world) is not world:
        raise Fault("BACKEND_CONFLICT", "the world is open already")
    call.emit("opened", cwd=wire(cwd), home=wire(os.environ.get("HOME", "/")), platform=platform(), pathStyle="posix",
              user=name_of(pwd.getpwuid, os.geteuid()), facts={"startFaults": True, "signals": True, "pauses": True})
    with call.changed:
        while not call.cancelled:
            call.changed.wait()
    connection.worlds.pop(p.get("world"), None)
    world.processes.end_all()
    return {}


def platform():
    u = os.uname()
    return "%s/%s" % (u.sysname.lower(), {"x86_64": "amd64", "aarch64": "arm64"}.get(u.machine, u.machine))


# ---- files ----------------------------------------------------------------

LOCKS = -1  # the file for locks, in the directory that afield gives us; never closed

BLANK = set(range(0x09, 0x0E)) | {0x20, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF} | set(range(0x2000, 0x200B))
PLAIN = set(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.!~*'()/")
BOM = b"\xef\xbb\xbf"
HINTS = {
    "FS_NOT_FOUND": "check the path, or list its parent", "FS_NOT_DIRECTORY": "read it, or list its parent",
    "FS_NOT_REGULAR_FILE": "name a regular file", "FS_NOT_TEXT": "use --bytes",
    "FS_TOO_LARGE": "raise the limit, or read a window", "FS_PERMISSION_DENIED": "fix the rights, or use another path",
    "FS_STALE_VERSION": "re-read the file, then retry", "FS_NOT_OBSERVED": "read the file, then retry",
    "FS_EDIT_NOT_FOUND": "re-read the file and copy the exact text", "FS_AMBIGUOUS_EDIT": "give more context, or replace all",
}


class Stop(Exception):
    """A refusal whose sentence is made where the path is known."""

    def __init__(self, code, why):
        super().__init__(why)
        self.code, self.why = code, why


def named(op, display, error, change=False):
    """Gives the contract's error for a failed step."""
    def fault(code, why):
        sentence = why if code == "FS_NOT_OBSERVED" or why.startswith("old_string") else "cannot %s %s: %s" % (op, quote(display), why)
        return Fault(code, sentence, HINTS.get(code, ""), wire(display) if isinstance(wire(display), str) else "")
    if isinstance(error, Stop):
        why = "cannot overwrite existing %s without reading it first" % quote(display) if error.code == "FS_NOT_OBSERVED" else error.why
        return fault(error.code, why)
    if error.errno == errno.ENOTDIR:
        return fault("FS_NOT_FOUND", "a parent path segment is not a directory")
    if error.errno == errno.ENOENT and not change:
        return fault("FS_NOT_FOUND", "not found")
    if error.errno in (errno.EACCES, errno.EPERM):
        return fault("FS_PERMISSION_DENIED", "permission denied")
    return fault("FS_IO_ERROR", os.strerror(error.errno or errno.EIO).lower())


STALE = Stop("FS_STALE_VERSION", "file changed since it was read")
GONE = Stop("FS_STALE_VERSION", "file no longer exists")
IRREGULAR = Stop("FS_NOT_REGULAR_FILE", "not a regular file")


def clean(path):
    out = []
    for part in path.split("/"):
        if part == "..":
            del out[-1:]
        elif part not in ("", "."):
            out.append(part)
    return "/" + "/".join(out)


def canon(path):
    """The physical path; of a missing file that of the nearest ancestor with the
    rest appended."""
    try:
        return os.path.realpath(octets(path), strict=True).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        if path == "/":
            raise
        return clean(canon(os.path.dirname(path)) + "/" + os.path.basename(path))


def name_of(look, number):
    try:
        return look(number)[0]
    except KeyError:
        return str(number)


def token(st):
    return "%d:%d:%d:%d:%d" % (st.st_dev, st.st_ino, st.st_size, st.st_mtime_ns, st.st_ctime_ns)


def kind(st):
    for test, word in ((stat.S_ISREG, "file"), (stat.S_ISDIR, "directory"), (stat.S_ISLNK, "symlink")):
        if test(st.st_mode):
            return word
    return "other"


def facts(st):
    seconds, nanos = divmod(st.st_mtime_ns, 10**9)
    info = {
        "type": kind(st), "version": token(st), "mode": "%04o" % stat.S_IMODE(st.st_mode),
        "mtime": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + ".%09dZ" % nanos,
        "owner": name_of(pwd.getpwuid, st.st_uid), "group": name_of(grp.getgrgid, st.st_gid),
    }
    if info["type"] in ("file", "symlink"):
        info["size"] = st.st_size
    return info


def target(key, display):
    url = "file://" + "".join(chr(c) if c in PLAIN else "%%%02X" % c for c in octets(key))
    return {"key": wire(key), "displayPath": wire(display), "processPath": wire(key), "url": url}


def valid(data):
    try:
        data.decode("utf-8")
        return True
    except UnicodeDecodeError:
        return False


def fold(data):
    return data.replace(b"\r\n", b"\n")


class Files:
    """The file contract over the machine's own files."""

    def __init__(self, cwd):
        self.cwd = cwd
        self.locks, self.lock_turn = {}, threading.Lock()

    def display(self, op, path, cwd):
        if all(ord(c) in BLANK for c in path):
            raise Fault("FS_NOT_FOUND", "file_path must be a non-empty string")
        if "\0" in path:
            raise Fault("FS_NOT_FOUND", "cannot %s %s: a path cannot hold a NUL byte" % (op, quote(path)))
        for base in (cwd, self.cwd):
            if not path.startswith("/") and base:
                path = base + "/" + path
        return clean(path)

    def at(self, op, p):
        """Gives the path, how it is called, and whether it is a key already."""
        at = p["at"]
        if at.get("target"):
            return text(at["target"]["key"]), text(at["target"]["displayPath"]), True
        path = self.display(op, text(at.get("path")), text(at.get("cwd")))
        return path, path, False

    def key(self, path, is_key):
        return path if is_key else canon(path)

    def resolve(self, call, p):
        path = self.display("resolve", text(p["path"]), text(p.get("cwd")))
        try:
            return {"target": target(canon(path), path)}
        except OSError as e:
            raise named("resolve", path, e)

    def stat(self, call, p):
        path, display, is_key = self.at("stat", p)
        key = path
        try:
            key = self.key(path, is_key)
            return {"target": target(key, display), "info": facts(os.stat(octets(key)))}
        except (FileNotFoundError, NotADirectoryError):
            return {"target": target(key, display), "info": None}
        except OSError as e:
            raise named("stat", display, e)

    def lstat(self, call, p):
        path = self.display("stat", text(p["path"]), text(p.get("cwd")))
        key = path
        try:
            key = clean(canon(os.path.dirname(path)) + "/" + os.path.basename(path))
            st = os.lstat(octets(key))
            info = facts(st)
            if info["type"] == "symlink":
                info["linkTarget"] = wire(os.readlink(octets(key)).decode("utf-8", "surrogateescape"))
            return {"target": target(key, path), "info": info}
        except (FileNotFoundError, NotADirectoryError):
            return {"target": target(key, path), "info": None}
        except OSError as e:
            raise named("stat", path, e)

    def open(self, path, is_key, limit=None):
        """Opens a regular file, and never one that could block."""
        key = self.key(path, is_key)
        st = os.stat(octets(key))
        if not stat.S_ISREG(st.st_mode):
            raise IRREGULAR
        if limit is not None and st.st_size > limit:
            raise Stop("FS_TOO_LARGE", "content exceeds the %d-byte limit" % limit)
        fd = os.open(octets(key), os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        st = os.fstat(fd)
        if not stat.S_ISREG(st.st_mode):
            os.close(fd)
            raise IRREGULAR
        return key, fd, st

    def read(self, call, p):
        path, display, is_key = self.at("read", p)
        limit = None if p.get("text") else p["maxBytes"]
        try:
            key, fd, st = self.open(path, is_key, limit)
            with os.fdopen(fd, "rb", buffering=0) as f:
                total = self.send_text(call, f) if p.get("text") else self.send_bytes(call, f, limit)
        except (OSError, Stop) as e:
            raise named("read", display, e)
        call.finish(1)
        return {"target": target(key, display), "bytes": total, "version": token(st)}

    def send_text(self, call, f):
        decoder, offset, proven = codecs.getincrementaldecoder("utf-8")("strict"), 0, b""
        while True:
            call.check()
            piece = f.read(1 << 18)
            if b"\0" in piece[:max(0, 8192 - offset)]:
                raise Stop("FS_NOT_TEXT", "binary file")
            offset += len(piece)
            try:
                decoder.decode(piece, final=not piece)
            except UnicodeDecodeError:
                raise Stop("FS_NOT_TEXT", "invalid UTF-8 text")
            data, rest = proven + piece, len(decoder.getstate()[0])
            call.write(1, data[:len(data) - rest])
            proven = data[len(data) - rest:]
            if not piece:
                return offset

    def send_bytes(self, call, f, limit):
        parts, total = [], 0
        while piece := f.read(min(1 << 18, limit + 1 - total)):
            call.check()
            total += len(piece)
            parts.append(piece)
            if total > limit:
                raise Stop("FS_TOO_LARGE", "content exceeds the %d-byte limit" % limit)
        for piece in parts:
            call.write(1, piece)
        return total

    def list(self, call, p):
        path, display, is_key = self.at("list", p)
        try:
            key = self.key(path, is_key)
            if not stat.S_ISDIR(os.stat(octets(key)).st_mode):
                raise Stop("FS_NOT_DIRECTORY", "not a directory")
            names = sorted(os.listdir(octets(key)))
        except (OSError, Stop) as e:
            raise named("list", display, e)
        lines = []
        for name in names:
            call.check()
            lines.append(json.dumps(self.entry(key, display, name)).encode() + b"\n")
            if len(lines) == 256:
                call.write(1, b"".join(lines))
                lines = []
        call.write(1, b"".join(lines))
        call.finish(1)
        return {"target": target(key, display), "count": len(names)}

    def entry(self, key, display, name):
        s = name.decode("utf-8", "surrogateescape")
        at, shown = clean(key + "/" + s), clean(display + "/" + s)
        out = {"name": name.decode("utf-8", "replace"), "type": "other"}
        try:
            st = os.stat(octets(at))
        except (FileNotFoundError, NotADirectoryError):
            st = None
        except OSError as e:
            raise named("list", shown, e)
        if os.path.islink(octets(at)):
            try:
                at = canon(at)
            except OSError:
                pass
        out["target"] = target(at, shown)
        if not valid(name):
            out["raw"] = base64.b64encode(name).decode()
        elif st is not None:
            info = facts(st)
            out.update(type=info["type"], version=info["version"])
            if info["type"] == "file":
                out["size"] = st.st_size
        return out

    # -- changes --

    def lock(self, call, key):
        """Takes the lock of a target: in the order of arrival among our own
        calls, then against other processes, by one byte of a file in our
        directory."""
        with self.lock_turn:
            line = self.locks.setdefault(key, collections.deque())
            line.append(call)
        place = int.from_bytes(hashlib.sha256(octets(key)).digest()[:7], "big")
        try:
            while line[0] is not call:
                call.check()
                time.sleep(0.002)
            while True:
                call.check()
                try:
                    fcntl.lockf(LOCKS, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
                    break
                except OSError as e:
                    if e.errno not in (errno.EAGAIN, errno.EACCES):
                        raise
                    time.sleep(0.002)
        except BaseException:
            self.leave(call, key)
            raise

        def release():
            fcntl.lockf(LOCKS, fcntl.LOCK_UN, 1, place)
            self.leave(call, key)
        return release

    def leave(self, call, key):
        with self.lock_turn:
            line = self.locks[key]
            line.remove(call)
            if not line:
                del self.locks[key]

    def write(self, call, p):
        path, display, is_key = self.at("write", p)
        mode = p.get("mode")
        if mode is not None and not 0 <= mode <= 0o777:
            raise Fault("USAGE", "the mode %o is not one of 0 to 0777" % mode)
        source = Content(call, p, display)
        intent, guard = p.get("intent", ""), p.get("version", "")
        try:
            key = self.key(path, is_key)
            release = self.lock(call, key)
            try:
                st = self.existing(key)
                self.admit(st, intent, guard)
                before = self.prior(key, st, p)
                guard = guard if intent == "replace" else ""
                if p.get("inPlace") and st is not None:
                    version = self.through(call, key, source, guard, mode)
                else:
                    version = self.publish(call, key, source, st, mode, intent == "create", guard)
            finally:
                release()
        except (OSError, Stop) as e:
            raise named("write", display, e, change=True)
        out = {"target": target(key, display), "operation": "create" if st is None else "update", "version": version, "before": None}
        if before is not None and source.total < p["basisMax"]:
            try:
                call.write(1, before)
                call.finish(1)
                out["before"] = {"bytes": len(before)}
            except (Refused, OSError):
                pass
        return out

    def existing(self, key):
        try:
            return os.stat(octets(key))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def admit(self, st, intent, guard):
        if st is not None and not stat.S_ISREG(st.st_mode):
            raise IRREGULAR
        if intent == "create" and st is not None:
            raise Stop("FS_NOT_OBSERVED", "")
        if intent == "replace" and st is None:
            raise GONE
        if intent == "replace" and token(st) != guard:
            raise STALE

    def prior(self, key, st, p):
        """The text that is replaced, where it is asked for and small enough."""
        limit = p.get("basisMax", 0) if "before" in (p.get("want") or ()) else 0
        if st is None or st.st_size >= limit:
            return None
        try:
            _, fd, _ = self.open(key, True, limit)
            with os.fdopen(fd, "rb") as f:
                data = f.read(limit)
        except (OSError, Stop):
            return None
        if len(data) != st.st_size or b"\0" in data or not valid(data):
            return None
        return fold(data.removeprefix(BOM))

    def through(self, call, key, source, guard, mode):
        """Writes through the file itself; not atomic."""
        data = b"".join(source.pieces())
        fd = os.open(octets(key), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "wb", buffering=0) as f:
            if guard and token(os.fstat(fd)) != guard:
                raise STALE
            call.check()
            view = memoryview(data)
            while view:
                view = view[f.write(view):]
            f.truncate(len(data))
            if mode is not None:
                os.fchmod(fd, mode)
            os.fsync(fd)
            return token(os.fstat(fd))

    def publish(self, call, key, source, st, mode, create, guard):
        """Stages beside the target and publishes in one step."""
        parent = os.path.dirname(key)
        os.makedirs(octets(parent), exist_ok=True)
        stage = octets(parent + "/.afield-" + secrets.token_hex(8) + ".tmp")
        os.mkdir(stage, 0o700)
        staged = stage + b"/content"
        fd = None
        try:
            os.chmod(stage, 0o700)
            fd = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            natural = stat.S_IMODE(os.fstat(fd).st_mode)
            os.fchmod(fd, 0o600)
            for piece in source.pieces():
                call.check()
                view = memoryview(piece)
                while view:
                    view = view[os.write(fd, view):]
            if st is not None:
                carry_over(key, st, fd)
            os.fchmod(fd, mode if mode is not None else st.st_mode & 0o777 if st is not None else natural)
            os.fsync(fd)
            call.check()
            if guard:
                self.unchanged(key, guard)
            self.rename(staged, octets(key), create)
            if os.path.lexists(staged):
                os.unlink(staged)
            folder = os.open(octets(parent), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            except OSError:
                pass
            os.close(folder)
            return token(os.fstat(fd))
        finally:
            if fd is not None:
                os.close(fd)
            for remove, name in ((os.unlink, staged), (os.rmdir, stage)):
                try:
                    remove(name)
                except OSError:
                    pass

    def unchanged(self, key, guard):
        try:
            st = os.lstat(octets(key))
        except (FileNotFoundError, NotADirectoryError):
            raise GONE
        if token(st) != guard:
            raise STALE

    def rename(self, staged, key, create):
        if not create:
            try:
                os.rename(staged, key)
            except OSError as e:
                if e.errno in (errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST):
                    raise IRREGULAR
                raise
            return
        try:
            os.link(staged, key, follow_symlinks=False)
        except FileExistsError:
            try:
                regular = stat.S_ISREG(os.lstat(key).st_mode)
            except FileNotFoundError:
                regular = True
            raise Stop("FS_NOT_OBSERVED", "") if regular else IRREGULAR

    def edit(self, call, p):
        path, display, is_key = self.at("edit", p)
        edits = []
        for sizes in [p] + (p.get("more") or []):
            data = b"".join(exactly(call, sizes["oldBytes"] + sizes["newBytes"]))
            edits.append((data[:sizes["oldBytes"]], data[sizes["oldBytes"]:], sizes.get("replaceAll")))
        try:
            key = self.key(path, is_key)
            release = (lambda: None) if p.get("dryRun") else self.lock(call, key)
            try:
                return self.edit_locked(call, p, key, display, edits)
            finally:
                release()
        except (OSError, Stop) as e:
            raise named("edit", display, e, change=True)

    def edit_locked(self, call, p, key, display, edits):
        try:
            key, fd, st = self.open(key, True)
        except FileNotFoundError:
            raise GONE
        with os.fdopen(fd, "rb") as f:
            if p.get("version") and p["version"] != token(st):
                raise STALE
            document = Document(f.read(), display)
        for old, new, everywhere in edits:
            document.apply(old, new, everywhere)
        if p.get("normalizeEol"):
            document.raw = fold(document.raw).replace(b"\n", document.eol)
        data = document.bom + document.raw
        version = token(st)
        if not p.get("dryRun"):
            source = Whole(data)
            if p.get("inPlace"):
                version = self.through(call, key, source, version, None)
            else:
                version = self.publish(call, key, source, st, None, False, version)
        out = {"target": target(key, display), "version": version, "bytes": len(data), "replacements": document.count,
               "beforeBytes": 0, "afterBytes": 0}
        if p.get("want") and max(len(document.before), len(document.text)) < p.get("basisMax", 0):
            try:
                call.write(1, document.before + document.text)
                call.finish(1)
                out.update(beforeBytes=len(document.before), afterBytes=len(document.text), basis=True)
            except (Refused, OSError):
                pass
        return out


def carry_over(key, st, fd):
    """Keeps owner and extended attributes of the file that is replaced, where
    the machine lets us."""
    try:
        now = os.fstat(fd)
        if (st.st_uid, st.st_gid) != (now.st_uid, now.st_gid):
            os.fchown(fd, st.st_uid, st.st_gid)
    except OSError:
        pass
    try:
        for name in os.listxattr(octets(key)):
            os.setxattr(fd, name, os.getxattr(octets(key), name))
    except OSError:
        pass


class Whole:
    """Content that is there already."""

    def __init__(self, data):
        self.data = data

    def pieces(self):
        yield self.data


class Content:
    """The content of a write. Up to 1 MiB is checked before anything is touched,
    the rest while it is staged."""

    FIRST = 1 << 20

    def __init__(self, call, p, display):
        self.call, self.size, self.raw, self.display = call, p.get("bytes"), p.get("raw"), display
        self.decoder = codecs.getincrementaldecoder("utf-8")("strict")
        self.total, self.head, self.done = 0, [], False
        while self.total <= self.FIRST and not self.done:
            self.head.append(self.next())

    def next(self):
        piece = self.call.read()
        self.total += len(piece)
        self.done = not piece
        if self.size is not None and (self.total > self.size or self.done and self.total != self.size):
            raise Fault("FS_IO_ERROR", "cannot write %s: the content does not have the announced %d bytes" % (quote(self.display), self.size))
        try:
            if not self.raw:
                self.decoder.decode(piece, final=self.done)
        except UnicodeDecodeError:
            raise Fault("FS_NOT_TEXT", "cannot write %s: the content is not UTF-8 text" % quote(self.display), HINTS["FS_NOT_TEXT"])
        return piece

    def pieces(self):
        yield from self.head
        while not self.done:
            yield self.next()


class Document:
    """A text as edits see it: line endings folded, everything outside of a match
    untouched."""

    def __init__(self, data, display):
        if b"\0" in data or not valid(data):
            raise Stop("FS_NOT_TEXT", "binary file" if b"\0" in data else "invalid UTF-8 text")
        self.display, self.bom = display, BOM if data.startswith(BOM) else b""
        self.raw = data[len(self.bom):]
        pairs = self.raw.count(b"\r\n")
        self.eol = b"\r\n" if pairs > self.raw.count(b"\n") - pairs else b"\n"
        self.text = self.before = fold(self.raw)
        self.count = 0

    def apply(self, old, new, everywhere):
        old, new = fold(old), fold(new)
        if not old:
            raise Stop("FS_EDIT_NOT_FOUND", "old_string must be a non-empty string")
        if self.count:
            self.text = fold(self.raw)
        n = self.text.count(old)
        if n == 0:
            raise Stop("FS_EDIT_NOT_FOUND", "old_string was not found in " + quote(self.display))
        if n > 1 and not everywhere:
            raise Stop("FS_AMBIGUOUS_EDIT", "old_string was found %d times in %s" % (n, quote(self.display)))
        self.count += n
        self.splice(old, new)

    def splice(self, old, new):
        # Where the folded text's positions are in the stored one: each pair
        # before a position moves it by one.
        starts = list(itertools.accumulate((len(part) + 1 for part in self.raw.split(b"\r\n")), initial=0))
        place = lambda at: at + bisect.bisect_right(starts, at) - 1
        stored, out, kept, at = new.replace(b"\n", self.eol), [], 0, 0
        while (found := self.text.find(old, at)) >= 0:
            at = found + len(old)
            out += [self.raw[kept:place(found)], stored]
            kept = place(at)
        self.raw = b"".join(out) + self.raw[kept:]
        self.text = self.text.replace(old, new)


# ---- processes ------------------------------------------------------------


def environment(p):
    env = {k: v for k, v in os.environb.items() if not k.startswith(b"AFIELD_")}
    for name, value in p.get("env") or ():
        env[octets(text(name))] = octets(text(value))
    for name in p.get("remove") or ():
        env.pop(octets(text(name)), None)
    return env


def executable(path):
    return os.path.isfile(path) and os.access(path, os.X_OK, effective_ids=True)


def search(name, env, cwd):
    """Looks a program up on PATH; gives it, or one that is not executable."""
    denied = None
    for directory in env.get(b"PATH", b"").split(b":"):
        candidate = (directory or b".") + b"/" + name
        full = candidate if candidate.startswith(b"/") else cwd + b"/" + candidate
        if os.path.isfile(full):
            if executable(full):
                return candidate, None
            denied = denied or full
    return None, denied


def which(command, env, cwd):
    name = octets(command)
    if name.startswith(b"/"):
        if executable(name):
            return command
        raise Fault("program-not-executable", "which %s: not an executable file" % command)
    found, _ = search(name, env, octets(cwd))
    if not found:
        raise Fault("program-not-found", "which %s: not found on PATH" % command)
    return clean(os.path.join(octets(cwd), found).decode("utf-8", "surrogateescape"))


def about(call):
    tree = call.connection.running.get(call.params["of"])
    if tree is None:
        raise Fault("unknown-session", "no program of stream %d is known any more" % call.params["of"])
    if call.method == "exec.terminate":
        threading.Thread(target=tree.end, daemon=True).start()
        return {}
    limit = call.params.get("timeoutMs", 0)
    deadline = None if limit < 0 else time.monotonic() + limit / 1000
    while not tree.gone.is_set():
        if call.cancelled or deadline is not None and time.monotonic() >= deadline:
            return {"exited": False, "survivors": sorted(tree.members())}
        tree.gone.wait(0.01)
    return {"exited": True}


class Processes:
    """Started programs, each with its tree."""

    def __init__(self):
        self.trees = set()

    def end_all(self):
        ends = [threading.Thread(target=tree.end) for tree in list(self.trees)]
        for end in ends:
            end.start()
        for end in ends:
            end.join()

    def spawn(self, call, p):
        argv, cwd, env = [octets(text(a)) for a in p["argv"]], octets(text(p["cwd"])), environment(p)
        program = self.program(argv[0], cwd, env)
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        try:
            with SPAWNING:
                child = subprocess.Popen(
                    argv, executable=program, cwd=cwd, env=env, start_new_session=True, bufsize=0,
                    stdin=pipe if p.get("stdin") == "pipe" else null,
                    stdout=pipe if p.get("stdout") == "pipe" else null, stderr=pipe if p.get("stderr") == "pipe" else null)
        except OSError as e:
            raise self.not_started(e, argv[0].decode("utf-8", "replace"))
        tree = Tree(child, p.get("graceMs", 0) / 1000)
        self.trees.add(tree)
        tree.on_gone.append(lambda: self.trees.discard(tree))
        call.connection.running[call.id] = tree
        tree.on_gone.append(lambda: call.connection.running.pop(call.id, None))
        threading.Thread(target=tree.watch, daemon=True).start()
        return self.carry(call, child, tree)

    def program(self, name, cwd, env):
        try:
            if not stat.S_ISDIR(os.stat(cwd).st_mode):
                raise NotADirectoryError
            if not os.access(cwd, os.X_OK, effective_ids=True):
                raise PermissionError
        except NotADirectoryError:
            raise Fault("cwd-not-directory", "enter %s: not a directory" % os.fsdecode(cwd))
        except FileNotFoundError:
            raise Fault("cwd-missing", "enter %s: no such directory" % os.fsdecode(cwd))
        except PermissionError:
            raise Fault("cwd-denied", "enter %s: not allowed" % os.fsdecode(cwd))
        if b"/" in name:
            return name
        found, denied = search(name, env, cwd)
        shown = name.decode("utf-8", "replace")
        if found:
            return found
        if denied:
            raise Fault("program-not-executable", "start %s: it is not executable" % shown)
        raise Fault("program-not-found", "start %s: not found on the PATH of the program" % shown)

    def not_started(self, e, name):
        codes = {
            errno.ENOENT: "program-not-found", errno.ENOTDIR: "program-not-found", errno.EACCES: "program-not-executable",
            errno.EISDIR: "program-not-executable", errno.EPERM: "program-not-executable", errno.ENOEXEC: "program-format",
            errno.E2BIG: "arguments-too-long",
        }
        return Fault(codes.get(e.errno, "spawn-failed"), "start %s: %s" % (name, os.strerror(e.errno or 0).lower()))

    def carry(self, call, child, tree):
        """Moves content between the call and the program until its end."""
        call.on_change.append(lambda: call.cancelled and threading.Thread(target=tree.end, daemon=True).start())
        call.emit("started", pid=child.pid)
        if call.cancelled:
            threading.Thread(target=tree.end, daemon=True).start()
        threading.Thread(target=feed, args=(call, child.stdin), daemon=True).start()
        drains = [threading.Thread(target=drain, args=(call, port, pipe), daemon=True) for port, pipe in ((1, child.stdout), (2, child.stderr)) if pipe]
        for d in drains:
            d.start()
        tree.exited.wait()
        deadline = time.monotonic() + tree.grace
        for d in drains:
            d.join(max(0, deadline - time.monotonic()))
        call.emit("exit", **tree.outcome)
        for d in drains:
            d.join()
        left = [] if tree.gone.is_set() else sorted(tree.members())
        return dict(tree.outcome, quiescent=not left, survivors=left, envDropped=[])


SPAWNING = threading.Lock()


def feed(call, pipe):
    """Copies the call's input to a program, which may not want all of it."""
    try:
        while pipe and (piece := call.read()):
            view = memoryview(piece)
            while view:
                view = view[os.write(pipe.fileno(), view):]
    except (OSError, Refused):
        try:
            call.connection.send(CLOSE, call.id)
        except OSError:
            pass
    if pipe:
        pipe.close()


class Alarm:
    """Wakes a thread that waits for a descriptor."""

    def __init__(self):
        self.turn = threading.Lock()
        self.reader, self.writer = os.pipe()

    def ring(self):
        with self.turn:
            if self.writer is not None:
                os.write(self.writer, b"x")

    def close(self):
        with self.turn:
            os.close(self.reader)
            os.close(self.writer)
            self.writer = None


def drain(call, port, pipe):
    """Copies a program's output to the call, until its end or until the caller
    wants no more."""
    alarm, poll = Alarm(), select.poll()
    call.on_change.append(lambda: port in call.closed and alarm.ring())
    poll.register(pipe, select.POLLIN)
    poll.register(alarm.reader, select.POLLIN)
    try:
        while port not in call.closed:
            if any(fd == alarm.reader for fd, _ in poll.poll()):
                break
            piece = os.read(pipe.fileno(), MAX_DATA)
            if not piece:
                break
            call.write(port, piece)
        call.finish(port)
    except (OSError, Refused):
        pass
    pipe.close()
    alarm.close()


class Tree:
    """A program and what has come of it. Its root is not reaped before the tree
    is gone, so that no id is given to others."""

    def __init__(self, child, grace):
        self.child, self.grace = child, grace
        self.known = {child.pid}
        self.exited, self.gone, self.ending = threading.Event(), threading.Event(), threading.Lock()
        self.outcome, self.on_gone, self.ended = None, [], False

    def watch(self):
        r = os.waitid(os.P_PID, self.child.pid, os.WEXITED | os.WNOWAIT)
        if r.si_code == os.CLD_EXITED:
            self.outcome = {"exitCode": r.si_status, "signal": None}
        else:
            self.outcome = {"exitCode": None, "signal": signal.Signals(r.si_status).name}
        self.exited.set()
        while self.members():
            time.sleep(0.02)
        self.child.wait()
        self.gone.set()
        for f in self.on_gone:
            f()

    def members(self):
        """The live processes of the tree: of its session, and all that descend
        from them, also those that have left it."""
        table, live = processes(), set()
        for pid, (ppid, sid, state) in table.items():
            if sid == self.child.pid or pid in self.known:
                live.add(pid)
        grown = True
        while grown:
            more = {pid for pid, (ppid, _, _) in table.items() if ppid in live and pid not in live}
            grown = bool(more)
            live |= more
        self.known = live | {self.child.pid}
        me = os.getpid()
        for pid in live:
            ppid, _, state = table.get(pid, (0, 0, "X"))
            if state == "Z" and ppid == me and pid != self.child.pid:
                try:
                    os.waitpid(pid, os.WNOHANG)
                except OSError:
                    pass
        return {pid for pid in live if table.get(pid, (0, 0, "X"))[2] not in "ZX"}

    def signal(self, number, pids):
        if not self.gone.is_set():
            for pid in pids:
                try:
                    os.kill(pid, number)
                except OSError:
                    pass

    def end(self):
        """TERM, the grace, then KILL until nothing is left."""
        with self.ending:
            if self.gone.is_set() or self.ended:
                return
            self.signal(signal.SIGTERM, self.members())
            deadline = time.monotonic() + self.grace
            while time.monotonic() < deadline and not self.gone.is_set() and self.members():
                self.gone.wait(0.01)
            for _ in range(200):
                if not (left := self.members()):
                    break
                self.signal(signal.SIGSTOP, left)
                self.signal(signal.SIGKILL, self.members())
                time.sleep(0.01)
            self.gone.wait(2)


def processes():
    """All processes: parent, session and state by id."""
    table = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as f:
                    fields = f.read().rpartition(b") ")[2].split()
                table[int(name)] = (int(fields[1]), int(fields[3]), fields[0].decode())
            except (OSError, IndexError):
                pass
    return table


def main():
    if os.environ.get("AFIELD_PROVIDER") != "1":
        sys.exit("this is a plugin of afield: afield plugin add --link " + os.path.dirname(os.path.abspath(__file__)))
    global LOCKS
    LOCKS = os.open("fs.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # what leaves a tree becomes our child and stays in reach
    os.umask(os.umask(0))
    os.write(1, b"afield-provider 1 %s\n" % os.environ.get("AFIELD_NONCE", "0").encode())
    connection = Connection(0, 1)
    # Our own end is that of the connection; asked to end by a signal, we close it.
    signal.signal(signal.SIGTERM, lambda *_: os.close(0))
    try:
        connection.serve()
    except OSError:
        pass
    os._exit(0)


main()
