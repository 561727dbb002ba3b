// A provider of afield in JavaScript: the files and plain processes of the
// machine on which it runs, at contract level. It needs nothing but Node.
//
// A provider of another world keeps Connection and Call, and replaces Files and
// Processes. Paths, arguments and contents are strings of bytes ("latin1"), so
// that nothing is lost of those that are not UTF-8.

import { isUtf8 } from 'node:buffer';
import { spawn } from 'node:child_process';
import { randomBytes, createHash } from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';

const ID = 'nodeplugin', VERSION = '1.0.0'; // what the manifest says, too
const HELLO = 1, CALL = 2, DATA = 3, WINDOW = 4, EVENT = 5, END = 6, CANCEL = 7, CLOSE = 8, PING = 9, PONG = 10, GOAWAY = 12;
const MAX_BODY = 1 << 20, MAX_DATA = 1 << 16, OUR_WINDOW = 1 << 18;
const OFFER = { name: 'machine', services: ['fs', 'exec'], level: 'contract', features: ['before', 'edits'] };
const SAID = { protocol: 1, plugin: ID, version: VERSION, providers: [OFFER], window: OUR_WINDOW, maxStreams: 256 };
const C = fs.constants;

// ---- the connection ---------------------------------------------------------

/** An error of a call: one of the protocol's codes, and a sentence. */
class Fault extends Error {
  constructor(code, message, hint = '', path = '') {
    super(message);
    Object.assign(this, { code, hint, path });
  }
}
/** The caller broke the protocol; the connection ends. */
class Broken extends Error {}
/** The caller wants no more of a port, or nothing at all. */
class Refused extends Error {}

class Connection {
  calls = new Map();
  worlds = new Map();
  trees = new Map(); // by the stream that started them
  last = 0;
  window = 1 << 14;
  greeted = false;
  rest = [];
  held = 0;

  send(kind, stream = 0, body = Buffer.alloc(0), port = 0, fin = false) {
    const frame = Buffer.allocUnsafe(12 + body.length);
    frame.writeUInt32BE(body.length, 0);
    frame.writeUInt32BE(stream, 4);
    frame.writeUInt8(kind, 8);
    frame.writeUInt8(port, 9);
    frame.writeUInt16BE(fin ? 1 : 0, 10);
    body.copy(frame, 12);
    process.stdout.write(frame);
  }

  sendJSON(kind, value, stream = 0) { this.send(kind, stream, Buffer.from(JSON.stringify(value))); }

  /** Takes what has arrived, as whole frames. */
  feed(piece) {
    this.rest.push(piece);
    this.held += piece.length;
    if (this.rest.length > 1 && this.held >= 12) this.rest = [Buffer.concat(this.rest)];
    let all = this.rest[0] ?? Buffer.alloc(0), at = 0;
    while (all.length - at >= 12) {
      const length = all.readUInt32BE(at), stream = all.readUInt32BE(at + 4), kind = all[at + 8], port = all[at + 9];
      if (length > MAX_BODY || kind === 0 || (kind > GOAWAY && kind < 32) || (kind < 32 && port > 2)) {
        throw new Broken(`a frame of kind ${kind} and ${length} bytes`);
      }
      if (all.length - at - 12 < length) break;
      if (kind < 32) this.take(kind, stream, port, (all[at + 11] & 1) === 1, all.subarray(at + 12, at + 12 + length));
      at += 12 + length;
    }
    this.rest = at < all.length ? [all.subarray(at)] : [];
    this.held = all.length - at;
  }

  take(kind, stream, port, fin, body) {
    if (kind === HELLO) {
      const hello = JSON.parse(body);
      if (this.greeted || hello.protocol !== 1) throw new Broken('HELLO');
      this.greeted = true;
      this.window = hello.window ?? 1 << 14;
    } else if (!this.greeted) {
      throw new Broken('a frame before HELLO');
    } else if (kind === PING) {
      this.send(PONG, 0, body);
    } else if (kind === CALL) {
      this.accept(stream, body);
    } else if (stream) {
      const call = this.calls.get(stream);
      if (call) call.take(kind, port, fin, Buffer.from(body));
      else if (stream % 2 === 0 || stream > this.last) throw new Broken(`a frame on stream ${stream}, which does not exist`);
    }
  }

  accept(stream, body) {
    if (stream % 2 === 0 || stream <= this.last || this.calls.size >= 256) throw new Broken(`CALL on stream ${stream}`);
    this.last = stream;
    const message = JSON.parse(body);
    const call = new Call(this, stream, message.m, message.p ?? {}, message.pn ?? 0);
    this.calls.set(stream, call);
    call.run();
  }

  /** Ends everything: the input has ended, or the caller broke the protocol. */
  async end() {
    for (const call of this.calls.values()) call.abandon();
    await Promise.all([...this.trees.values()].map((tree) => tree.end()));
    process.exit(0);
  }
}

/** One call under way. */
class Call {
  pieces = [];
  held = 0;
  owed = 0;
  fin = false;
  closed = new Set();
  cancelled = false;
  ended = false;
  waiting = [];
  listeners = [];

  constructor(connection, id, method, params, more) {
    Object.assign(this, { connection, id, method, params, more });
    this.credit = { 1: connection.window, 2: connection.window };
  }

  take(kind, port, fin, body) {
    if (kind === DATA) {
      if (this.fin || port || this.held + this.owed + body.length > OUR_WINDOW) throw new Broken('DATA on a closed port, or beyond its credit');
      this.fin = fin;
      if (body.length) this.pieces.push(body);
      this.held += body.length;
    } else if (kind === WINDOW && port in this.credit) {
      this.credit[port] += body.readUInt32BE(0);
    } else if (kind === CLOSE) {
      this.closed.add(port);
    } else if (kind === CANCEL) {
      this.cancelled = true;
    }
    this.wake();
  }

  abandon() {
    this.cancelled = true;
    this.fin = true;
    this.closed.add(1).add(2);
    this.wake();
  }

  wake() {
    for (const f of this.waiting.splice(0)) f();
    for (const f of this.listeners) f();
  }

  changed() { return new Promise((resolve) => this.waiting.push(resolve)); }

  /** Gives content of the input port, null at its end, and its credit back. */
  async read(limit = MAX_DATA) {
    while (!this.pieces.length && !this.fin && !this.cancelled && !this.ended) await this.changed();
    if (!this.pieces.length) {
      if (!this.fin) throw new Refused();
      return null;
    }
    let piece = this.pieces.shift();
    if (piece.length > limit) {
      this.pieces.unshift(piece.subarray(limit));
      piece = piece.subarray(0, limit);
    }
    this.held -= piece.length;
    this.owed += piece.length;
    if (this.owed >= OUR_WINDOW / 4 && !this.fin) {
      const body = Buffer.alloc(4);
      body.writeUInt32BE(this.owed, 0);
      this.owed = 0;
      this.connection.send(WINDOW, this.id, body);
    }
    return piece;
  }

  async exactly(n) {
    const parts = [];
    while (n > 0) {
      const piece = await this.read(n);
      if (!piece) throw new Fault('BACKEND_PROTOCOL', 'the content did not arrive whole');
      parts.push(piece);
      n -= piece.length;
    }
    return Buffer.concat(parts);
  }

  /** Sends content, as the caller's credit allows. */
  async write(port, data) {
    for (let at = 0; at < data.length;) {
      while (!this.credit[port] && !this.closed.has(port) && !this.cancelled) await this.changed();
      if (this.closed.has(port) || !this.credit[port]) throw new Refused();
      const n = Math.min(data.length - at, this.credit[port], MAX_DATA);
      this.credit[port] -= n;
      this.connection.send(DATA, this.id, data.subarray(at, at + n), port);
      at += n;
      if (at < data.length) await tick();
    }
  }

  finish(port) {
    if (!this.closed.has(port)) this.connection.send(DATA, this.id, Buffer.alloc(0), port, true);
  }

  emit(name, fields) { this.connection.sendJSON(EVENT, { ...fields, e: name }, this.id); }

  check() {
    if (this.cancelled) throw new Fault('FS_ABORTED', `${this.method} was cancelled`);
  }

  async run() {
    let answer;
    try {
      if (this.more) this.params = JSON.parse(await this.exactly(this.more));
      answer = (await dispatch(this)) ?? {};
    } catch (e) {
      answer = failure(e, this.method);
    }
    this.ended = true;
    this.wake();
    this.connection.calls.delete(this.id);
    this.connection.sendJSON(END, answer, this.id);
  }
}

const tick = () => new Promise((resolve) => setImmediate(resolve));
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function failure(e, method) {
  let { code, message, hint = '', path = '' } = e;
  if (e instanceof Refused) [code, message] = ['FS_ABORTED', `${method} was cancelled`];
  else if (!(e instanceof Fault)) {
    console.error(e); // a defect of ours
    [code, message] = ['internal', String(e)];
  }
  message = message.replaceAll('\n', ' ').slice(0, 1000);
  const word = method.slice(method.indexOf('.') + 1), op = word === 'lstat' ? 'stat' : word;
  return { error: { code, message, op, hint, path, retry: 'no' } };
}

// ---- bytes and words --------------------------------------------------------

const bytes = (v) => (v && typeof v === 'object' ? Buffer.from(v.b64, 'base64') : Buffer.from(v ?? '')).toString('latin1');
const octets = (s) => Buffer.from(s, 'latin1');
const shown = (s) => octets(s).toString('utf8');
const wire = (s) => (isUtf8(octets(s)) ? shown(s) : { b64: octets(s).toString('base64') });
const quote = (s) => JSON.stringify(shown(s));
const fold = (s) => s.replaceAll('\r\n', '\n');
const BOM = '\u00ef\u00bb\u00bf';

// ---- dispatch ---------------------------------------------------------------

class World {
  constructor(cwd) {
    this.cwd = cwd;
    this.files = new Files(cwd);
  }
}

async function dispatch(call) {
  const { method, connection, params } = call;
  if (method === 'describe') return SAID;
  if (method === 'world.open') return openWorld(call);
  if (method === 'world.ping') return {};
  if (method === 'exec.terminate' || method === 'exec.wait') return about(call);
  const world = connection.worlds.get(params.world);
  if (!world) throw new Fault('world-gone', `there is no world ${JSON.stringify(params.world)} on this connection`);
  switch (method) {
    case 'fs.resolve': case 'fs.stat': case 'fs.lstat': case 'fs.read': case 'fs.list': case 'fs.write': case 'fs.edit':
      return world.files[method.slice(3)](call, params);
    case 'exec.which':
      return { path: wire(which(bytes(params.command), environment(params), world.cwd)) };
    case 'exec.spawn':
      return startProgram(call, params);
  }
  throw new Fault('UNSUPPORTED', `unknown method ${method}`);
}

async function openWorld(call) {
  const { params: p, connection } = call;
  const cwd = bytes(p.cwd) || bytes(p.config?.cwd) || bytes(process.env.HOME) || '/';
  if (!isDirectory(cwd)) throw new Fault('CONFIG_INVALID', `there is no directory ${quote(cwd)}`);
  if (connection.worlds.has(p.world)) throw new Fault('BACKEND_CONFLICT', 'the world is open already');
  connection.worlds.set(p.world, new World(cwd));
  const arch = { x64: 'amd64' }[process.arch] ?? process.arch;
  call.emit('opened', {
    cwd: wire(cwd), home: process.env.HOME ?? '/', platform: `${process.platform}/${arch}`, pathStyle: 'posix', user: userName(process.geteuid()),
    facts: { startFaults: true, signals: true, pauses: true, losesOwner: true },
  });
  while (!call.cancelled) await call.changed();
  connection.worlds.delete(p.world);
  await Promise.all([...connection.trees.values()].map((tree) => tree.end()));
  return {};
}

// ---- files ------------------------------------------------------------------

const HINTS = {
  FS_NOT_FOUND: 'check the path, or list its parent', FS_NOT_DIRECTORY: 'read it, or list its parent', FS_NOT_REGULAR_FILE: 'name a regular file',
  FS_NOT_TEXT: 'use --bytes', FS_TOO_LARGE: 'raise the limit, or read a window', FS_PERMISSION_DENIED: 'fix the rights, or use another path',
  FS_STALE_VERSION: 're-read the file, then retry', FS_NOT_OBSERVED: 'read the file, then retry',
  FS_EDIT_NOT_FOUND: 're-read the file and copy the exact text', FS_AMBIGUOUS_EDIT: 'give more context, or replace all',
};

/** A refusal whose sentence is made where the path is known. */
class Stop extends Error {
  constructor(word, why = '') {
    super(why);
    Object.assign(this, { word, why });
  }
}
const stale = () => new Stop('FS_STALE_VERSION', 'file changed since it was read');
const gone = () => new Stop('FS_STALE_VERSION', 'file no longer exists');
const irregular = () => new Stop('FS_NOT_REGULAR_FILE', 'not a regular file');

/** Gives the contract's error for a failed step. */
function named(op, display, e, change = false) {
  if (e instanceof Fault || e instanceof Refused) return e;
  const fault = (code, why) => {
    const whole = code.endsWith('_EDIT') || code === 'FS_EDIT_NOT_FOUND' || code === 'FS_NOT_OBSERVED';
    return new Fault(code, whole ? why : `cannot ${op} ${quote(display)}: ${why}`, HINTS[code] ?? '', shown(display));
  };
  if (e instanceof Stop) {
    return fault(e.word, e.word === 'FS_NOT_OBSERVED' ? `cannot overwrite existing ${quote(display)} without reading it first` : e.why);
  }
  switch (e.code) {
    case 'ENOTDIR': return fault('FS_NOT_FOUND', 'a parent path segment is not a directory');
    case 'ENOENT': if (!change) return fault('FS_NOT_FOUND', 'not found'); break;
    case 'EACCES': case 'EPERM': return fault('FS_PERMISSION_DENIED', 'permission denied');
    case undefined: return e;
  }
  return fault('FS_IO_ERROR', String(e.message).split(',')[0].replace(/^[A-Z0-9]+: /, ''));
}

const isAbsent = (e) => e.code === 'ENOENT' || e.code === 'ENOTDIR';
const dirname = (p) => p.slice(0, p.lastIndexOf('/')) || '/';
const basename = (p) => p.slice(p.lastIndexOf('/') + 1);

function clean(path) {
  const out = [];
  for (const part of path.split('/')) {
    if (part === '..') out.pop();
    else if (part !== '' && part !== '.') out.push(part);
  }
  return '/' + out.join('/');
}

/** The physical path; of a missing file that of the nearest ancestor with the
 * rest appended. */
function canon(path) {
  try {
    return fs.realpathSync.native(octets(path), 'buffer').toString('latin1');
  } catch (e) {
    if (e.code !== 'ENOENT' || path === '/') throw e;
    return clean(canon(dirname(path)) + '/' + basename(path));
  }
}

const statOf = (path) => fs.statSync(octets(path), { bigint: true });
const lstatOf = (path) => fs.lstatSync(octets(path), { bigint: true });
const token = (st) => `${st.dev}:${st.ino}:${st.size}:${st.mtimeNs}:${st.ctimeNs}`;
const kind = (st) => (st.isFile() ? 'file' : st.isDirectory() ? 'directory' : st.isSymbolicLink() ? 'symlink' : 'other');

function isDirectory(path) {
  try {
    return statOf(path).isDirectory();
  } catch {
    return false;
  }
}

function names(file) {
  const known = new Map();
  try {
    for (const line of fs.readFileSync(file, 'utf8').split('\n')) {
      const part = line.split(':');
      if (part.length > 2 && !known.has(part[2])) known.set(part[2], part[0]);
    }
  } catch {} // without the file numbers are names
  return (id) => known.get(String(id)) ?? String(id);
}
const userName = names('/etc/passwd'), groupName = names('/etc/group');

function facts(st) {
  const seconds = st.mtimeNs / 1000000000n, nanos = st.mtimeNs % 1000000000n;
  const info = {
    type: kind(st), version: token(st), mode: (Number(st.mode) & 0o7777).toString(8).padStart(4, '0'),
    mtime: new Date(Number(seconds) * 1000).toISOString().slice(0, 19) + '.' + String(nanos).padStart(9, '0') + 'Z',
    owner: userName(st.uid), group: groupName(st.gid),
  };
  if (info.type === 'file' || info.type === 'symlink') info.size = Number(st.size);
  return info;
}

function target(key, display) {
  const url = 'file://' + [...key].map((c) => (/[a-zA-Z0-9\-_.!~*'()/]/.test(c) ? c : '%' + c.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0'))).join('');
  return { key: wire(key), displayPath: wire(display), processPath: wire(key), url };
}

/** Bytes at the end of data that begin a character and do not finish it. */
function unfinished(data) {
  for (let n = 1; n <= Math.min(3, data.length); n++) {
    const c = data[data.length - n];
    if ((c & 0xc0) === 0x80) continue;
    const need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
    return need > n ? n : 0;
  }
  return 0;
}

/** The file contract over the machine's own files. */
class Files {
  constructor(cwd) { this.cwd = cwd; }

  display(op, path, cwd) {
    if (/^[\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]*$/.test(shown(path))) {
      throw new Fault('FS_NOT_FOUND', 'file_path must be a non-empty string');
    }
    if (path.includes('\0')) throw new Fault('FS_NOT_FOUND', `cannot ${op} ${quote(path)}: a path cannot hold a NUL byte`);
    for (const base of [cwd, this.cwd]) if (!path.startsWith('/') && base) path = base + '/' + path;
    return clean(path);
  }

  /** The path, how it is called, and whether it is a key already. */
  at(op, { at }) {
    if (at.target) return [bytes(at.target.key), bytes(at.target.displayPath), true];
    const path = this.display(op, bytes(at.path), bytes(at.cwd));
    return [path, path, false];
  }

  resolve(call, p) {
    const path = this.display('resolve', bytes(p.path), bytes(p.cwd));
    try {
      return { target: target(canon(path), path) };
    } catch (e) {
      throw named('resolve', path, e);
    }
  }

  stat(call, p) {
    const [path, display, isKey] = this.at('stat', p);
    let key = path;
    try {
      key = isKey ? path : canon(path);
      return { target: target(key, display), info: facts(statOf(key)) };
    } catch (e) {
      if (isAbsent(e)) return { target: target(key, display), info: null };
      throw named('stat', display, e);
    }
  }

  lstat(call, p) {
    const path = this.display('stat', bytes(p.path), bytes(p.cwd));
    let key = path;
    try {
      key = clean(canon(dirname(path)) + '/' + basename(path));
      const st = lstatOf(key), info = facts(st);
      if (st.isSymbolicLink()) info.linkTarget = wire(fs.readlinkSync(octets(key), 'buffer').toString('latin1'));
      return { target: target(key, path), info };
    } catch (e) {
      if (isAbsent(e)) return { target: target(key, path), info: null };
      throw named('stat', path, e);
    }
  }

  /** Opens a regular file, and never one that could block. */
  open(path, isKey, limit = -1) {
    const key = isKey ? path : canon(path);
    let st = statOf(key);
    if (!st.isFile()) throw irregular();
    if (limit >= 0 && st.size > limit) throw new Stop('FS_TOO_LARGE', `content exceeds the ${limit}-byte limit`);
    const fd = fs.openSync(octets(key), C.O_RDONLY | C.O_NONBLOCK | C.O_NOCTTY);
    st = fs.fstatSync(fd, { bigint: true });
    if (!st.isFile()) {
      fs.closeSync(fd);
      throw irregular();
    }
    return [key, fd, st];
  }

  async read(call, p) {
    const [path, display, isKey] = this.at('read', p);
    let fd = -1;
    try {
      const [key, opened, st] = this.open(path, isKey, p.text ? -1 : p.maxBytes);
      fd = opened;
      const total = await (p.text ? this.sendText(call, fd) : this.sendBytes(call, fd, p.maxBytes));
      call.finish(1);
      return { target: target(key, display), bytes: total, version: token(st) };
    } catch (e) {
      throw named('read', display, e);
    } finally {
      if (fd >= 0) fs.closeSync(fd);
    }
  }

  async sendText(call, fd) {
    let offset = 0, rest = Buffer.alloc(0);
    for (;;) {
      call.check();
      const piece = readSome(fd, 1 << 18);
      if (piece.subarray(0, Math.max(0, 8192 - offset)).includes(0)) throw new Stop('FS_NOT_TEXT', 'binary file');
      offset += piece.length;
      const data = Buffer.concat([rest, piece]), end = piece.length ? data.length - unfinished(data) : data.length;
      if (!isUtf8(data.subarray(0, end))) throw new Stop('FS_NOT_TEXT', 'invalid UTF-8 text');
      await call.write(1, data.subarray(0, end));
      rest = data.subarray(end);
      if (!piece.length) return offset;
      await tick();
    }
  }

  async sendBytes(call, fd, limit) {
    const data = readAll(fd, limit);
    if (data.length > limit) throw new Stop('FS_TOO_LARGE', `content exceeds the ${limit}-byte limit`);
    await tick();
    call.check();
    await call.write(1, data);
    return data.length;
  }

  async list(call, p) {
    const [path, display, isKey] = this.at('list', p);
    let key, found;
    try {
      key = isKey ? path : canon(path);
      if (!statOf(key).isDirectory()) throw new Stop('FS_NOT_DIRECTORY', 'not a directory');
      found = fs.readdirSync(octets(key), 'buffer').sort(Buffer.compare);
    } catch (e) {
      throw named('list', display, e);
    }
    for (let i = 0; i < found.length; i += 256) {
      call.check();
      const lines = found.slice(i, i + 256).map((name) => JSON.stringify(this.entry(key, display, name)) + '\n');
      await call.write(1, Buffer.from(lines.join('')));
      await tick();
    }
    call.finish(1);
    return { target: target(key, display), count: found.length };
  }

  entry(key, display, name) {
    const s = name.toString('latin1');
    let at = clean(key + '/' + s), st = null;
    const called = clean(display + '/' + s), out = { name: name.toString('utf8'), type: 'other' };
    try {
      st = statOf(at);
    } catch (e) {
      if (!isAbsent(e)) throw named('list', called, e);
    }
    try {
      if (lstatOf(at).isSymbolicLink()) at = canon(at);
    } catch {} // it has vanished, or leads nowhere
    out.target = target(at, called);
    if (!isUtf8(name)) {
      out.raw = name.toString('base64');
    } else if (st) {
      Object.assign(out, { type: kind(st), version: token(st) });
      if (st.isFile()) out.size = Number(st.size);
    }
    return out;
  }

  // -- changes --

  async write(call, p) {
    const [path, display, isKey] = this.at('write', p);
    const mode = p.mode ?? -1;
    if (mode < -1 || mode > 0o777) throw new Fault('USAGE', `the mode ${mode.toString(8)} is not one of 0 to 0777`);
    const source = new Content(call, p, display), { intent = '', version: guard = '' } = p;
    await source.begin();
    let release = () => {}, before, st, version, key;
    try {
      key = isKey ? path : canon(path);
      release = await lock(call, key);
      st = existing(key);
      admit(st, intent, guard);
      before = this.prior(key, st, p);
      const held = intent === 'replace' ? guard : '';
      version = p.inPlace && st ? await through(call, key, source, held, mode)
        : await publish(call, key, source, st, mode, intent === 'create', held);
    } catch (e) {
      throw named('write', display, e, true);
    } finally {
      release();
    }
    const out = { target: target(key, display), operation: st ? 'update' : 'create', version, before: null };
    if (before !== undefined && source.total < p.basisMax && (await sent(call, before))) out.before = { bytes: before.length };
    return out;
  }

  /** The text that is replaced, where it is asked for and small enough. */
  prior(key, st, p) {
    const limit = p.want?.includes('before') ? p.basisMax : 0;
    if (!st || st.size >= limit) return undefined;
    let fd = -1;
    try {
      fd = this.open(key, true, limit)[1];
      const data = readAll(fd, limit);
      if (BigInt(data.length) !== st.size || data.includes(0) || !isUtf8(data)) return undefined;
      const s = data.toString('latin1');
      return octets(fold(s.startsWith(BOM) ? s.slice(3) : s));
    } catch {
      return undefined;
    } finally {
      if (fd >= 0) fs.closeSync(fd);
    }
  }

  async edit(call, p) {
    const [path, display, isKey] = this.at('edit', p);
    const edits = [];
    for (const n of [p, ...(p.more ?? [])]) {
      const data = (await call.exactly(n.oldBytes + n.newBytes)).toString('latin1');
      edits.push([data.slice(0, n.oldBytes), data.slice(n.oldBytes), n.replaceAll]);
    }
    let release = () => {};
    try {
      const key = isKey ? path : canon(path);
      if (!p.dryRun) release = await lock(call, key);
      return await this.editLocked(call, p, key, display, edits);
    } catch (e) {
      throw named('edit', display, e, true);
    } finally {
      release();
    }
  }

  async editLocked(call, p, key, display, edits) {
    let fd, st, document;
    try {
      [key, fd, st] = this.open(key, true);
    } catch (e) {
      throw e.code === 'ENOENT' ? gone() : e;
    }
    try {
      if (p.version && p.version !== token(st)) throw stale();
      document = new Document(readAll(fd, Infinity), display);
    } finally {
      fs.closeSync(fd);
    }
    for (const [old, fresh, everywhere] of edits) document.apply(old, fresh, everywhere);
    if (p.normalizeEol) document.raw = fold(document.raw).replaceAll('\n', document.eol);
    const data = octets(document.bom + document.raw);
    let version = token(st);
    await tick();
    call.check();
    if (!p.dryRun) {
      const source = { pieces: async function* () { yield data; } };
      version = p.inPlace ? await through(call, key, source, version, -1) : await publish(call, key, source, st, -1, false, version);
    }
    const out = { target: target(key, display), version, bytes: data.length, replacements: document.count, beforeBytes: 0, afterBytes: 0 };
    const { before, text } = document;
    if (p.want?.length && Math.max(before.length, text.length) < p.basisMax && (await sent(call, octets(before + text)))) {
      Object.assign(out, { beforeBytes: before.length, afterBytes: text.length, basis: true });
    }
    return out;
  }
}

/** Sends what the caller wanted to know of a change; it stands in any case. */
async function sent(call, data) {
  try {
    await call.write(1, data);
    call.finish(1);
    return true;
  } catch {
    return false;
  }
}

function readSome(fd, n) {
  const b = Buffer.allocUnsafe(n);
  return b.subarray(0, fs.readSync(fd, b, 0, n, null));
}

/** Reads to the end, or just beyond a limit. */
function readAll(fd, limit) {
  const parts = [];
  for (let total = 0; total <= limit;) {
    const piece = readSome(fd, Math.min(1 << 18, limit + 1 - total));
    if (!piece.length) break;
    parts.push(piece);
    total += piece.length;
  }
  return Buffer.concat(parts);
}

function writeAll(fd, data) {
  for (let at = 0; at < data.length;) at += fs.writeSync(fd, data, at);
}

function existing(key) {
  try {
    return statOf(key);
  } catch (e) {
    if (isAbsent(e)) return null;
    throw e;
  }
}

function admit(st, intent, guard) {
  if (st && !st.isFile()) throw irregular();
  if (intent === 'create' && st) throw new Stop('FS_NOT_OBSERVED');
  if (intent === 'replace' && !st) throw gone();
  if (intent === 'replace' && token(st) !== guard) throw stale();
}

const lines = new Map(); // of our own calls, by key

/** Takes the lock of a target: in the order of arrival among our own calls,
 * then, by a name that only one process can have, against others. */
async function lock(call, key) {
  const line = lines.get(key) ?? [];
  lines.set(key, line);
  line.push(call);
  let server = null;
  const release = () => {
    server?.close();
    line.splice(line.indexOf(call), 1);
    if (!line.length) lines.delete(key);
  };
  try {
    while (line[0] !== call) {
      call.check();
      await pause(1);
    }
    const name = '\0afield-nodeplugin-' + createHash('sha256').update(key).digest('hex').slice(0, 32);
    while (!(server = await bound(name))) {
      call.check();
      await pause(1);
    }
    return release;
  } catch (e) {
    release();
    throw e;
  }
}

/** Gives a server that has a name for itself, null while another has it. */
function bound(name) {
  return new Promise((resolve, reject) => {
    const s = net.createServer((c) => c.destroy());
    s.on('error', (e) => (e.code === 'EADDRINUSE' ? resolve(null) : reject(e)));
    s.listen({ path: name, exclusive: true }, () => resolve(s));
  });
}

/** Writes through the file itself; not atomic. */
async function through(call, key, source, guard, mode) {
  const parts = [];
  for await (const piece of source.pieces()) parts.push(piece);
  const data = Buffer.concat(parts);
  const fd = fs.openSync(octets(key), C.O_WRONLY | C.O_NONBLOCK);
  try {
    if (guard && token(fs.fstatSync(fd, { bigint: true })) !== guard) throw stale();
    call.check();
    writeAll(fd, data);
    fs.ftruncateSync(fd, data.length);
    if (mode >= 0) fs.fchmodSync(fd, mode);
    fs.fsyncSync(fd);
    return token(fs.fstatSync(fd, { bigint: true }));
  } finally {
    fs.closeSync(fd);
  }
}

function quietly(f) {
  try {
    f();
  } catch {} // what it does is not owed
}

/** Stages beside the target and publishes in one step. */
async function publish(call, key, source, st, mode, create, guard) {
  const parent = dirname(key);
  fs.mkdirSync(octets(parent), { recursive: true });
  const stage = `${parent}/.afield-${randomBytes(8).toString('hex')}.tmp`, staged = stage + '/content';
  fs.mkdirSync(octets(stage), 0o700);
  let fd = -1;
  try {
    fs.chmodSync(octets(stage), 0o700);
    fd = fs.openSync(octets(staged), C.O_WRONLY | C.O_CREAT | C.O_EXCL, 0o666);
    const natural = fs.fstatSync(fd).mode & 0o777;
    fs.fchmodSync(fd, 0o600);
    for await (const piece of source.pieces()) {
      call.check();
      writeAll(fd, piece);
    }
    if (st) quietly(() => fs.fchownSync(fd, Number(st.uid), Number(st.gid)));
    fs.fchmodSync(fd, mode >= 0 ? mode : st ? Number(st.mode) & 0o777 : natural);
    fs.fsyncSync(fd);
    await tick();
    call.check();
    if (guard) unchanged(key, guard);
    rename(staged, key, create);
    quietly(() => fs.unlinkSync(octets(staged)));
    quietly(() => {
      const folder = fs.openSync(octets(parent), C.O_RDONLY | C.O_DIRECTORY);
      fs.fsyncSync(folder);
      fs.closeSync(folder);
    });
    return token(fs.fstatSync(fd, { bigint: true }));
  } finally {
    if (fd >= 0) fs.closeSync(fd);
    quietly(() => fs.unlinkSync(octets(staged)));
    quietly(() => fs.rmdirSync(octets(stage)));
  }
}

function unchanged(key, guard) {
  let st;
  try {
    st = lstatOf(key);
  } catch (e) {
    throw isAbsent(e) ? gone() : e;
  }
  if (token(st) !== guard) throw stale();
}

function rename(staged, key, create) {
  try {
    if (create) fs.linkSync(octets(staged), octets(key));
    else fs.renameSync(octets(staged), octets(key));
  } catch (e) {
    if (!create && ['EISDIR', 'ENOTEMPTY', 'EEXIST'].includes(e.code)) throw irregular();
    if (!create || e.code !== 'EEXIST') throw e;
    let regular = true;
    quietly(() => { regular = lstatOf(key).isFile(); });
    throw regular ? new Stop('FS_NOT_OBSERVED') : irregular();
  }
}

/** The content of a write. Up to 1 MiB is checked before anything is touched,
 * the rest while it is staged. */
class Content {
  total = 0;
  head = [];
  done = false;
  rest = Buffer.alloc(0);

  constructor(call, p, display) { Object.assign(this, { call, size: p.bytes, raw: p.raw, display }); }

  async begin() {
    while (this.total <= 1 << 20 && !this.done) this.head.push(await this.next());
  }

  async next() {
    const piece = await this.call.read();
    this.done = !piece;
    this.total += piece?.length ?? 0;
    if (this.size != null && (this.total > this.size || (this.done && this.total !== this.size))) {
      throw new Fault('FS_IO_ERROR', `cannot write ${quote(this.display)}: the content does not have the announced ${this.size} bytes`);
    }
    if (!this.raw) {
      const data = piece ? Buffer.concat([this.rest, piece]) : this.rest, end = this.done ? data.length : data.length - unfinished(data);
      if (!isUtf8(data.subarray(0, end))) {
        throw new Fault('FS_NOT_TEXT', `cannot write ${quote(this.display)}: the content is not UTF-8 text`, HINTS.FS_NOT_TEXT);
      }
      this.rest = data.subarray(end);
    }
    return piece ?? Buffer.alloc(0);
  }

  async *pieces() {
    yield* this.head;
    while (!this.done) yield await this.next();
  }
}

/** A text as edits see it: line endings folded, everything outside of a match
 * untouched. */
class Document {
  count = 0;

  constructor(data, display) {
    if (data.includes(0)) throw new Stop('FS_NOT_TEXT', 'binary file');
    if (!isUtf8(data)) throw new Stop('FS_NOT_TEXT', 'invalid UTF-8 text');
    const s = data.toString('latin1');
    this.display = display;
    this.bom = s.startsWith(BOM) ? BOM : '';
    this.raw = s.slice(this.bom.length);
    const pairs = this.raw.split('\r\n').length - 1;
    this.eol = pairs > this.raw.split('\n').length - 1 - pairs ? '\r\n' : '\n';
    this.text = this.before = fold(this.raw);
  }

  apply(old, fresh, everywhere) {
    [old, fresh] = [fold(old), fold(fresh)];
    if (!old) throw new Stop('FS_EDIT_NOT_FOUND', 'old_string must be a non-empty string');
    if (this.count) this.text = fold(this.raw);
    const n = this.text.split(old).length - 1;
    if (!n) throw new Stop('FS_EDIT_NOT_FOUND', `old_string was not found in ${quote(this.display)}`);
    if (n > 1 && !everywhere) throw new Stop('FS_AMBIGUOUS_EDIT', `old_string was found ${n} times in ${quote(this.display)}`);
    this.count += n;
    this.splice(old, fresh);
  }

  splice(old, fresh) {
    const stored = fresh.replaceAll('\n', this.eol), out = [];
    let folded = 0, pos = 0; // one place, in the folded and in the stored text
    const walk = (to) => {
      while (folded < to) {
        const left = to - folded, next = this.raw.indexOf('\r\n', pos);
        if (next < 0 || next - pos >= left) {
          pos += left;
          folded = to;
        } else {
          folded += next - pos + 1;
          pos = next + 2;
        }
      }
      return pos;
    };
    let kept = 0;
    for (let at = 0, found; (found = this.text.indexOf(old, at)) >= 0;) {
      at = found + old.length;
      out.push(this.raw.slice(kept, walk(found)), stored);
      kept = walk(at);
    }
    this.raw = out.join('') + this.raw.slice(kept);
    this.text = this.text.split(old).join(fresh);
  }
}

// ---- processes --------------------------------------------------------------

function environment(p) {
  const env = new Map(Object.entries(process.env).filter(([k]) => !k.startsWith('AFIELD_')).map(([k, v]) => [bytes(k), bytes(v)]));
  for (const [name, value] of p.env ?? []) env.set(bytes(name), bytes(value));
  for (const name of p.remove ?? []) env.delete(bytes(name));
  return env;
}

function executable(path) {
  try {
    fs.accessSync(octets(path), C.X_OK);
    return statOf(path).isFile();
  } catch {
    return false;
  }
}

/** Looks a program up on PATH; gives it, or one that is not executable. */
function search(name, env, cwd) {
  let denied = '';
  for (const directory of (env.get('PATH') ?? '').split(':')) {
    const candidate = (directory || '.') + '/' + name, full = candidate.startsWith('/') ? candidate : cwd + '/' + candidate;
    let regular = false;
    quietly(() => { regular = statOf(full).isFile(); });
    if (regular && executable(full)) return [full, ''];
    if (regular) denied ||= full;
  }
  return ['', denied];
}

function which(command, env, cwd) {
  if (command.startsWith('/')) {
    if (executable(command)) return command;
    throw new Fault('program-not-executable', `which ${shown(command)}: not an executable file`);
  }
  const [found] = search(command, env, cwd);
  if (!found) throw new Fault('program-not-found', `which ${shown(command)}: not found on PATH`);
  return clean(found);
}

async function about(call) {
  const { method, params, connection } = call;
  const tree = connection.trees.get(params.of);
  if (!tree) throw new Fault('unknown-session', `no program of stream ${params.of} is known any more`);
  if (method === 'exec.terminate') {
    tree.end();
    return {};
  }
  const limit = params.timeoutMs ?? 0, deadline = limit < 0 ? Infinity : Date.now() + limit;
  while (!tree.gone) {
    if (call.cancelled || Date.now() >= deadline) return { exited: false, survivors: tree.members() };
    await pause(5);
  }
  return { exited: true };
}

/** Gives the program that is started, or why it cannot be. */
function program(name, cwd, env) {
  let st;
  try {
    st = statOf(cwd);
    if (st.isDirectory()) fs.accessSync(octets(cwd), C.X_OK);
  } catch (e) {
    if (e.code === 'ENOENT') throw new Fault('cwd-missing', `enter ${shown(cwd)}: no such directory`);
    if (e.code === 'EACCES') throw new Fault('cwd-denied', `enter ${shown(cwd)}: not allowed`);
  }
  if (!st?.isDirectory()) throw new Fault('cwd-not-directory', `enter ${shown(cwd)}: not a directory`);
  let file = name.startsWith('/') ? name : cwd + '/' + name;
  if (!name.includes('/')) {
    const [found, denied] = search(name, env, cwd);
    if (!found && denied) throw new Fault('program-not-executable', `start ${shown(name)}: it is not executable`);
    if (!found) throw new Fault('program-not-found', `start ${shown(name)}: not found on the PATH of the program`);
    file = found;
  }
  checkProgram(file, name);
  return file;
}

/** Holds what the kernel would: Node's way of starting hides some of it. */
function checkProgram(file, name) {
  let head = Buffer.alloc(0);
  try {
    if (!executable(file)) {
      statOf(file);
      throw new Fault('program-not-executable', `start ${shown(name)}: not executable`);
    }
    const fd = fs.openSync(octets(file), 'r');
    head = readSome(fd, 256);
    fs.closeSync(fd);
  } catch (e) {
    if (e instanceof Fault) throw e;
    if (isAbsent(e)) throw new Fault('program-not-found', `start ${shown(name)}: no such program`);
    return; // it can be executed and not read
  }
  const text = head.toString('latin1');
  if (text.startsWith('#!')) {
    const interpreter = text.slice(2).split('\n')[0].trim().split(/[ \t]/)[0];
    if (!fs.existsSync(octets(interpreter))) throw new Fault('program-not-found', `start ${shown(name)}: no such interpreter`);
  } else if (!text.startsWith('\x7fELF')) {
    throw new Fault('program-format', `start ${shown(name)}: no program of this machine, and no interpreter line`);
  }
}

/** Starts a program. What is no UTF-8 Node cannot hand over: a shell decodes it
 * and becomes the program. */
function start(file, argv, cwd, env, stdio) {
  const odd = [file, cwd, ...argv, ...[...env].flat()].some((s) => !isUtf8(octets(s)));
  const options = { stdio, detached: true, env: Object.fromEntries([...env].filter((kv) => kv.every((s) => isUtf8(octets(s)))).map((kv) => kv.map(shown))) };
  if (!odd) return spawn(shown(file), argv.slice(1).map(shown), { ...options, argv0: shown(argv[0]), cwd: shown(cwd) });
  const word = (s) => `"$(d '${[...octets(s)].map((b) => '\\0' + b.toString(8).padStart(3, '0')).join('')}')"`;
  const script = ['d() { printf %b "$1"; }', `cd ${word(cwd)} || exit 126`];
  for (const [k, v] of env) if (!isUtf8(octets(v)) && /^\w+$/.test(k)) script.push(`export ${k}=${word(v)}`);
  script.push(`exec ${[file, ...argv.slice(1)].map(word).join(' ')}`);
  return spawn('/bin/sh', ['-c', script.join('\n')], { ...options, cwd: '/' });
}

async function startProgram(call, p) {
  const argv = p.argv.map(bytes), cwd = bytes(p.cwd), env = environment(p);
  const file = program(argv[0], cwd, env), pipe = (word) => (word === 'pipe' ? 'pipe' : 'ignore');
  let child;
  try {
    child = start(file, argv, cwd, env, [pipe(p.stdin), pipe(p.stdout), pipe(p.stderr)]);
    await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
  } catch (e) {
    const codes = { ENOENT: 'program-not-found', EACCES: 'program-not-executable', ENOEXEC: 'program-format', E2BIG: 'arguments-too-long' };
    throw new Fault(codes[e.code] ?? 'spawn-failed', `start ${shown(argv[0])}: ${e.code ?? e.message}`);
  }
  const tree = new Tree(child, p.graceMs ?? 0);
  call.connection.trees.set(call.id, tree);
  tree.watch().then(() => call.connection.trees.delete(call.id));
  return carry(call, child, tree);
}

/** Moves content between the call and a program until its end. */
async function carry(call, child, tree) {
  call.listeners.push(() => call.cancelled && tree.end());
  call.emit('started', { pid: child.pid });
  if (call.cancelled) tree.end();
  feed(call, child.stdin);
  const drains = Promise.all([drain(call, 1, child.stdout), drain(call, 2, child.stderr)]);
  const outcome = await tree.exited;
  await Promise.race([drains, pause(tree.grace)]);
  call.emit('exit', outcome);
  await drains;
  const survivors = tree.gone ? [] : tree.members();
  return { ...outcome, quiescent: !survivors.length, survivors, envDropped: [] };
}

/** Copies the call's input to a program, which may not want all of it. */
async function feed(call, pipe) {
  if (!pipe) return;
  let refused = false;
  pipe.on('error', () => {
    refused = true;
    call.connection.send(CLOSE, call.id);
    call.wake();
  });
  try {
    for (let piece; !refused && (piece = await call.read());) {
      if (!pipe.write(piece)) await Promise.race([new Promise((r) => pipe.once('drain', r).once('close', r))]);
    }
  } catch {} // the call has ended
  pipe.end();
}

/** Copies a program's output to the call, until its end or until the caller
 * wants no more. */
async function drain(call, port, pipe) {
  if (!pipe) return call.finish(port);
  const stop = () => call.closed.has(port) && pipe.destroy();
  call.listeners.push(stop);
  stop();
  try {
    for await (const piece of pipe) await call.write(port, piece);
    call.finish(port);
  } catch {} // the caller wants no more
  pipe.destroy();
}

/** A program and what has come of it. */
class Tree {
  gone = false;
  ending = null;

  constructor(child, grace) {
    Object.assign(this, { pid: child.pid, grace, known: new Set([child.pid]) });
    this.exited = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ exitCode: code, signal })));
    this.exited.then(() => { this.done = true; });
  }

  /** Waits until nothing is left. What leaves the session is followed as long as
   * it is seen below a member. */
  async watch() {
    for (let wait = 50; !this.done; wait = Math.min(2 * wait, 1000)) {
      await Promise.race([this.exited, pause(wait)]);
      if (!this.done) this.members();
    }
    while (this.members().length) await pause(10);
    this.gone = true;
  }

  members() {
    const table = processes(), live = new Set();
    for (const [pid, { session }] of table) if (session === this.pid || this.known.has(pid)) live.add(pid);
    for (let grown = true; grown;) {
      grown = false;
      for (const [pid, { parent }] of table) {
        if (live.has(parent) && !live.has(pid)) {
          live.add(pid);
          grown = true;
        }
      }
    }
    this.known = live;
    return [...live].filter((pid) => !'ZX'.includes(table.get(pid).state) && !(this.done && pid === this.pid));
  }

  signal(name) {
    for (const pid of this.gone ? [] : this.members()) quietly(() => process.kill(pid, name));
  }

  /** TERM, the grace, then KILL until nothing is left; once. */
  end() {
    this.ending ??= this.ladder();
    return this.ending;
  }

  async ladder() {
    this.signal('SIGTERM');
    for (const deadline = Date.now() + this.grace; Date.now() < deadline && !(this.done && !this.members().length);) await pause(10);
    for (let i = 0; i < 200 && !(this.done && !this.members().length); i++) {
      this.signal('SIGSTOP');
      this.signal('SIGKILL');
      await pause(10);
    }
  }
}

/** All processes: parent, session and state by id. */
function processes() {
  const table = new Map();
  for (const name of fs.readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = fs.readFileSync(`/proc/${name}/stat`, 'latin1'), f = stat.slice(stat.lastIndexOf(') ') + 2).split(' ');
      table.set(Number(name), { state: f[0], parent: Number(f[1]), session: Number(f[3]) });
    } catch {} // it has ended
  }
  return table;
}

// ---- start ------------------------------------------------------------------

if (process.env.AFIELD_PROVIDER !== '1') {
  console.error('this is a plugin of afield: afield plugin add --link ' + import.meta.dirname);
  process.exit(2);
}
process.stdout.write(`afield-provider 1 ${process.env.AFIELD_NONCE ?? '0'}\n`);
const connection = new Connection();
connection.sendJSON(HELLO, SAID);
process.stdin.on('data', (piece) => {
  try {
    connection.feed(piece);
  } catch (e) {
    connection.sendJSON(GOAWAY, { code: 'PLUGIN_PROTOCOL', message: String(e.message) });
    process.stdin.destroy();
    connection.end();
  }
});
process.stdin.on('end', () => connection.end());
process.on('SIGTERM', () => connection.end());
process.stdout.on('error', () => connection.end());
