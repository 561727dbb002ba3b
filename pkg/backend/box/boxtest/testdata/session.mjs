// An independent client of exec sessions on the npm package "ws", written from
// the list of frames, with compression on. Every assertion that fails ends the
// program with a status other than 0.
import assert from "node:assert/strict";
import WebSocket from "ws";

const base = process.env.UPSTASH_BOX_BASE_URL;
const key = process.env.UPSTASH_BOX_API_KEY;
const id = process.argv[2];
const url = `${base.replace(/^http/, "ws")}/v2/box/${id}/exec-session`;

// open starts a program and gives what it sends.
function open(start) {
  const ws = new WebSocket(url, { headers: { "X-Box-Api-Key": key }, perMessageDeflate: true });
  const s = { ws, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), pid: 0, watchers: [] };
  s.send = (frame) => ws.send(JSON.stringify(frame));
  s.stdin = (text) => s.send({ type: "stdin", data: Buffer.from(text).toString("base64") });
  s.until = (test) => new Promise((done) => { s.watchers.push([test, done]); s.look(); });
  s.look = () => { s.watchers = s.watchers.filter(([test, done]) => (test(s) ? (done(), false) : true)); };
  ws.on("open", () => s.send({ type: "start", cwd: "/workspace/home", ...start }));
  s.started = new Promise((done, fail) => { s.isStarted = done; s.refused = fail; });
  s.started.catch(() => {});
  s.exit = new Promise((done, fail) => { s.isDone = done; s.isLost = fail; });
  s.exit.catch(() => {});
  ws.on("error", (e) => { s.refused(e); s.isLost(e); });
  ws.on("close", () => s.isLost(new Error("closed without exit")));
  ws.on("message", (text) => {
    const f = JSON.parse(text);
    switch (f.type) {
      case "started": s.pid = f.pid; s.isStarted(f.pid); break;
      case "stdout": s.stdout = Buffer.concat([s.stdout, Buffer.from(f.data, "base64")]); s.look(); break;
      case "stderr": s.stderr = Buffer.concat([s.stderr, Buffer.from(f.data, "base64")]); s.look(); break;
      case "exit": s.isDone(f.code); ws.close(); break;
      case "error": s.refused(new Error(f.message)); s.isLost(new Error(f.message)); break;
    }
  });
  return s;
}

async function run(start, input) {
  const s = open(start);
  await s.started;
  if (input !== undefined) { s.stdin(input); s.send({ type: "stdin_close" }); }
  const code = await s.exit;
  return { code, stdout: s.stdout.toString(), stderr: s.stderr.toString(), pid: s.pid };
}

// alive asks the box whether a process lives.
async function alive(pid) {
  const r = await fetch(`${base}/v2/box/${id}/exec`, { method: "POST", headers: { "X-Box-Api-Key": key, "Content-Type": "application/json" },
    body: JSON.stringify({ command: ["sh", "-c", `[ -d /proc/${pid} ] && ! grep -q ') Z' /proc/${pid}/stat`] }) });
  return (await r.json()).exit_code === 0;
}

async function gone(pid) {
  for (let i = 0; i < 300; i++) {
    if (!(await alive(pid))) return;
  }
  assert.fail(`process ${pid} lives`);
}

let r = await run({ argv: ["sh", "-c", "echo out; echo err >&2; exit 42"] });
assert.deepEqual([r.code, r.stdout, r.stderr], [42, "out\n", "err\n"]);
assert.ok(r.pid > 1);
r = await run({ argv: ["printf", "[%s]", "$HOME", "a b", "`id`", ""] });
assert.equal(r.stdout, "[$HOME][a b][`id`][]");
r = await run({ cmd: "echo $0 && echo $((6*7))" });
assert.equal(r.stdout, "bash\n42\n");
r = await run({ argv: ["sort"], env: ["LC_ALL=C"] }, "banana\napple\n");
assert.equal(r.stdout, "apple\nbanana\n");
r = await run({ argv: ["sh", "-c", "pwd; echo $A:$LD_PRELOAD"], cwd: "/tmp", env: ["A=b", "LD_PRELOAD=/x.so"] });
assert.equal(r.stdout, "/tmp\nb:\n");
r = await run({ argv: ["sh", "-c", "echo ${A-none}"] });
assert.equal(r.stdout, "none\n");
r = await run({ argv: ["no-such-program"] });
assert.equal(r.code, 127);

// Termination reaches the whole tree.
let s = open({ argv: ["sh", "-c", "sleep 300 & echo $!; sleep 300"] });
await s.started;
await s.until((x) => x.stdout.includes("\n"));
const child = Number(s.stdout.toString());
s.send({ type: "terminate", graceMs: 2000 });
assert.equal(await s.exit, 143);
await gone(child);

// A signal that is none is ignored, a known one arrives.
s = open({ argv: ["sh", "-c", "trap 'echo got; exit 9' USR1; echo ready; while :; do sleep 0.05; done"] });
await s.started;
await s.until((x) => x.stdout.includes("ready"));
s.send({ type: "signal", signal: "BOGUS" });
s.send({ type: "signal", signal: "USR1" });
assert.equal(await s.exit, 9);

// A terminal.
s = open({ argv: ["sh", "-c", "stty size; tty; read line; echo got:$line; stty size"], tty: true, rows: 24, cols: 80 });
await s.started;
await s.until((x) => x.stdout.includes("/dev/pts/"));
assert.ok(s.stdout.toString().startsWith("24 80\r\n"));
s.send({ type: "resize", rows: 40, cols: 120 });
s.stdin("hello\r");
assert.equal(await s.exit, 0);
assert.ok(s.stdout.includes("got:hello"));
assert.ok(s.stdout.includes("40 120"));

// Three round trips.
s = open({ argv: ["cat"] });
await s.started;
for (const word of ["one\n", "two\n", "three\n"]) {
  s.stdin(word);
  await s.until((x) => x.stdout.toString().endsWith(word));
}
s.send({ type: "stdin_close" });
assert.equal(await s.exit, 0);

// Four at once.
const four = await Promise.all([1, 2, 3, 4].map((n) => run({ argv: ["sh", "-c", `echo ${n}`] })));
assert.deepEqual(four.map((x) => x.stdout), ["1\n", "2\n", "3\n", "4\n"]);

// Closing the socket ends the tree.
s = open({ argv: ["sleep", "300"] });
const pid = await s.started;
s.ws.close();
await gone(pid);

// Refusals.
await assert.rejects(open({ argv: [] }).started);
await assert.rejects(open({ argv: ["pwd"], cwd: "/no/such" }).started, /could not determine session pid/);
await assert.rejects(new Promise((_, fail) => {
  new WebSocket(url, { headers: { "X-Box-Api-Key": "wrong" } }).on("error", fail);
}), /401/);

// Files written by a session are seen by the files API.
await run({ argv: ["sh", "-c", "cat > seen.txt"] }, "by session");
const seen = await fetch(`${base}/v2/box/${id}/files/read?path=/workspace/home/seen.txt`, { headers: { "X-Box-Api-Key": key } });
assert.equal((await seen.json()).content, "by session");
console.log("session: all assertions hold");
