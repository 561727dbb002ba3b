// Drives the REST half of the stand-in with the official SDK. The address and
// the key come from the environment; every assertion that fails ends the
// program with a status other than 0.
import assert from "node:assert/strict";
import fs from "node:fs/promises";
import path from "node:path";
import { Box, EphemeralBox, BoxError } from "@upstash/box";

const baseUrl = process.env.UPSTASH_BOX_BASE_URL;
const apiKey = process.env.UPSTASH_BOX_API_KEY;
const conn = { baseUrl, apiKey };

const fault = (f) => fetch(`${baseUrl}/control/fault`, { method: "POST", body: JSON.stringify(f) });
const clear = () => fetch(`${baseUrl}/control/fault`, { method: "DELETE" });
const journal = async () => (await fetch(`${baseUrl}/control/journal`)).json();
const status = (code) => (e) => e instanceof BoxError && e.statusCode === code;

async function creation() {
  const box = await Box.create({
    ...conn, runtime: "node", size: "small", name: "first", labels: ["ci"], env: { GREETING: "hello" },
    networkPolicy: { mode: "allow-all" },
  });
  assert.match(box.id, /^[a-z]+-[a-z]+-\d+$/);
  const created = (await journal()).find((r) => r.line === "POST /v2/box");
  const body = JSON.parse(created.body);
  assert.equal(body.runtime, "node");
  assert.deepEqual(body.env_vars, { GREETING: "hello" });
  await assert.rejects(Box.create({ ...conn, name: "first" }), status(409));
  assert.equal((await Box.get(box.id, conn)).id, box.id);
  assert.equal((await Box.getByName("first", conn)).id, box.id);
  assert.ok((await Box.list(conn)).some((b) => b.id === box.id));
  assert.ok((await Box.list({ ...conn, label: "ci" })).some((b) => b.id === box.id));
  assert.equal((await Box.list({ ...conn, label: "other" })).length, 0);
  assert.equal((await box.getStatus()).status, "idle");
  return box;
}

async function commands(box) {
  const ok = await box.exec.command("echo out; echo note >&2");
  assert.deepEqual([ok.exitCode, ok.result, ok.stdout, ok.stderr], [0, "out\n", "out\n", "note\n"]);
  const bad = await box.exec.command("echo no >&2; exit 3");
  assert.deepEqual([bad.exitCode, bad.result], [3, "no\n"]);
  assert.equal((await box.exec.command("echo $GREETING")).result, "hello\n");
  assert.equal((await box.exec.code({ code: "console.log(6*7)", lang: "js" })).result, "42\n");
  const stream = await box.exec.stream("echo one; sleep 0.1; echo two >&2; exit 5");
  let text = "";
  let exit = null;
  for await (const chunk of stream) {
    if (chunk.type === "output") text += chunk.data;
    if (chunk.type === "exit") exit = chunk.exitCode;
  }
  assert.deepEqual([text, exit], ["one\ntwo\n", 5]);
}

async function files(box, dir) {
  await box.files.write({ path: "plain.txt", content: "text é\n" });
  assert.equal(await box.files.read("plain.txt"), "text é\n");
  const bytes = Buffer.from([0, 255, 1, 254, 10]);
  await box.files.write({ path: "deep/er/bytes.bin", content: bytes.toString("base64"), encoding: "base64" });
  assert.deepEqual(Buffer.from(await box.files.read("deep/er/bytes.bin", { encoding: "base64" }), "base64"), bytes);
  await box.files.write({ path: "/tmp/outside.txt", content: "tmp" });
  assert.equal((await box.exec.command("cat /tmp/outside.txt")).result, "tmp");
  await assert.rejects(box.files.read("missing.txt"), status(404));
  const names = (await box.files.list()).map((f) => f.name).sort();
  assert.deepEqual(names, ["deep", "plain.txt"]);
  assert.ok((await box.files.list()).find((f) => f.name === "deep").is_dir);
  await box.exec.command("mkdir empty");
  assert.deepEqual(await box.files.list("empty"), []);
  await fs.writeFile(path.join(dir, "a"), "AAA");
  await fs.writeFile(path.join(dir, "b"), bytes);
  await box.files.upload([
    { path: path.join(dir, "a"), destination: "up/a.txt" }, { path: path.join(dir, "b"), destination: "up/b.bin" }]);
  assert.equal((await box.exec.command("cat up/a.txt")).result, "AAA");
  process.chdir(dir);
  await box.files.download({ folder: "up" });
  assert.deepEqual(await fs.readFile(path.join(dir, "up", "b.bin")), bytes);
}

async function directories(box) {
  await box.cd("deep");
  assert.equal(box.cwd, "/workspace/home/deep");
  assert.equal((await box.exec.command("pwd")).result, "/workspace/home/deep\n");
  assert.equal((await box.files.list("er")).length, 1);
  await box.cd("..");
  await box.cd("/tmp");
  assert.equal((await box.exec.command("pwd")).result, "/tmp\n");
  await assert.rejects(box.cd("/no/such/place"));
  await box.cd("/workspace/home");
}

async function lifecycle(box) {
  await box.pause();
  assert.equal((await box.getStatus()).status, "paused");
  await box.resume();
  assert.equal((await box.getStatus()).status, "idle");
  await box.pause();
  assert.equal((await box.exec.command("cat plain.txt")).result, "text é\n");
  await box.updateNetworkPolicy({ mode: "deny-all" });
  assert.deepEqual(await box.labels.add("extra"), ["ci", "extra"]);
  assert.deepEqual(await box.labels.remove("extra"), ["ci"]);
  assert.deepEqual(await box.labels.list(), ["ci"]);
  assert.ok((await box.logs()).length > 0);
  assert.ok((await box.listRuns()).some((r) => r.prompt.includes("cat plain.txt")));
  const kept = await Box.create({ ...conn, keepAlive: true, initCommand: "true" });
  assert.equal(await kept.getInitCommand(), "true");
  await kept.setInitCommand("false");
  assert.equal(await kept.getInitCommand(), "false");
  await kept.deleteInitCommand();
  await assert.rejects(kept.pause());
  await kept.delete();
}

async function snapshots(box) {
  const snap = await box.snapshot({ name: "saved" });
  assert.equal(snap.status, "ready");
  assert.ok((await box.listSnapshots()).some((s) => s.id === snap.id));
  const copy = await EphemeralBox.fromSnapshot(snap.id, { ...conn, ttl: 60 });
  assert.equal(await copy.files.read("plain.txt"), "text é\n");
  assert.equal((await copy.exec.command("echo $GREETING")).result, "hello\n");
  await copy.delete();
  await box.deleteSnapshot(snap.id);
  const other = await box.snapshot({ name: "again" });
  assert.equal((await Box.deleteSnapshots({ ...conn, snapshotIds: other.id })).deleted, 1);
}

async function ephemeral() {
  const box = await EphemeralBox.create({ ...conn, ttl: 60 });
  assert.ok(box.expiresAt > Date.now() / 1000);
  await box.files.write({ path: "f", content: "x" });
  assert.equal((await box.exec.command("cat f")).result, "x");
  await box.delete();
  await assert.rejects(box.exec.command("true"), status(404));
  assert.ok(!(await Box.list(conn)).some((b) => b.id === box.id));
}

async function failures(box) {
  await assert.rejects(Box.list({ ...conn, apiKey: "box_wrong" }), status(401));
  for (const [code, body] of [[502, "<html>bad</html>"], [429, ""]]) {
    await fault({ match: "/exec", times: 1, status: code, body });
    await assert.rejects(box.exec.command("true"), (e) => status(code)(e) && e.message === `Request failed with status ${code}`);
  }
  await fault({ match: "/pause", times: 1, status: 200, body: "" });
  await box.pause();
  await fault({ match: "creation fails" });
  await assert.rejects(Box.create(conn), /creation failed/);
  await clear();
  await Box.delete({ ...conn, boxIds: [box.id] });
  await assert.rejects(box.exec.command("true"), status(404));
}

const dir = process.argv[2];
const box = await creation();
await commands(box);
await files(box, dir);
await directories(box);
await lifecycle(box);
await snapshots(box);
await ephemeral();
await failures(box);
console.log("sdk: all assertions hold");
