// A second, minimal server of exec sessions on the npm package "ws", written
// from the list of frames and not from the stand-in. Programs run on this
// machine. It prints its address and ends when its input does.
import http from "node:http";
import { spawn } from "node:child_process";
import { WebSocketServer } from "ws";

const server = http.createServer((_, res) => { res.statusCode = 404; res.end('{"error":"Not found"}'); });
const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: true });

server.on("upgrade", (req, socket, head) => {
  if (req.headers["x-box-api-key"] !== process.env.UPSTASH_BOX_API_KEY) {
    const body = '{"error":"Invalid API key"}';
    socket.end(`HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    return;
  }
  sockets.handleUpgrade(req, socket, head, serve);
});

function serve(ws) {
  let child = null;
  const send = (frame) => ws.readyState === ws.OPEN && ws.send(JSON.stringify(frame));
  const kill = (signal) => { try { process.kill(-child.pid, signal); } catch { /* gone */ } };
  const handle = {
    start(f) {
      const env = { ...process.env };
      for (const entry of f.env ?? []) {
        const at = entry.indexOf("=");
        env[entry.slice(0, at)] = entry.slice(at + 1);
      }
      child = spawn(f.argv[0], f.argv.slice(1), { cwd: f.cwd, env, detached: true });
      child.on("error", (e) => send({ type: "error", message: e.message }));
      child.stdin.on("error", () => {});
      if (child.pid) send({ type: "started", pid: child.pid, execId: "x1" });
      child.stdout.on("data", (d) => send({ data: d.toString("base64"), type: "stdout" }));
      child.stderr.on("data", (d) => send({ data: d.toString("base64"), type: "stderr" }));
      child.on("close", (code, signal) => send({ type: "exit", code: code ?? 128 + { SIGTERM: 15, SIGKILL: 9, SIGINT: 2 }[signal] }));
    },
    stdin: (f) => child.stdin.write(Buffer.from(f.data, "base64")),
    stdin_close: () => child.stdin.end(),
    signal: (f) => kill("SIG" + f.signal),
    terminate(f) {
      kill("SIGTERM");
      setTimeout(() => kill("SIGKILL"), f.graceMs ?? 5000).unref();
    },
  };
  ws.on("message", (text, binary) => {
    if (!binary) { const f = JSON.parse(text); handle[f.type]?.(f); }
  });
  ws.on("close", () => child && kill("SIGKILL"));
}

server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
process.stdin.on("end", () => process.exit(0)).resume();
