// The official SDK against the stand-in. Usage: node sdk.mjs DIR, where DIR
// holds node_modules with the package e2b. The addresses and the key come from
// the SDK's own environment variables. Each step prints its name when it holds.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import path from 'node:path'

const require = createRequire(path.join(process.argv[2], 'index.js'))
const { Sandbox, CommandExitError, NotFoundError, FileType } = require('e2b')

const step = async (name, run) => {
  await run()
  console.log('ok ' + name)
}
const until = async (probe) => {
  for (let i = 0; i < 1500; i++) {
    if (await probe()) return
    await new Promise((r) => setTimeout(r, 20))
  }
  assert.fail('it did not happen within 30 s')
}
const collect = async (stream) => {
  const parts = []
  for await (const p of stream) parts.push(Buffer.from(p))
  return Buffer.concat(parts)
}

const sbx = await Sandbox.create('base', { timeoutMs: 120_000, metadata: { purpose: 'sdk test & more' }, envs: { GIVEN: 'yes' } })

await step('files.write and read text', async () => {
  const info = await sbx.files.write('dir/deep/a.txt', 'héllo\n')
  assert.equal(info.name, 'a.txt')
  assert.equal(info.type, 'file')
  assert.equal(await sbx.files.read('dir/deep/a.txt'), 'héllo\n')
})
await step('files.write bytes and read bytes, blob and stream', async () => {
  const bytes = Uint8Array.from({ length: 70_000 }, (_, i) => i % 256)
  await sbx.files.write('bin.dat', bytes.buffer)
  assert.deepEqual(Buffer.from(await sbx.files.read('bin.dat', { format: 'bytes' })), Buffer.from(bytes))
  assert.equal((await sbx.files.read('bin.dat', { format: 'blob' })).size, 70_000)
  assert.deepEqual(await collect(await sbx.files.read('bin.dat', { format: 'stream' })), Buffer.from(bytes))
})
await step('files.write of several files', async () => {
  const infos = await sbx.files.write([{ path: 'm/1', data: 'one' }, { path: 'm/2', data: 'two' }])
  assert.equal(infos.length, 2)
  assert.equal(await sbx.files.read('m/2'), 'two')
})
await step('files.read of the empty and of the absent', async () => {
  await sbx.files.write('empty', '')
  assert.equal(await sbx.files.read('empty'), '')
  await assert.rejects(() => sbx.files.read('absent'), NotFoundError)
})
await step('files.getInfo', async () => {
  const info = await sbx.files.getInfo('dir/deep/a.txt')
  assert.equal(info.size, 7)
  assert.equal(info.type, FileType.FILE)
  assert.equal(info.mode, 0o644)
  assert.equal(info.permissions, '-rw-r--r--')
  assert.ok(info.path.endsWith('/home/user/dir/deep/a.txt'))
  assert.ok(Date.now() - info.modifiedTime.getTime() < 600_000)
})
await step('files.getInfo of links', async () => {
  await sbx.commands.run('ln -s dir/deep/a.txt link; ln -s nowhere dangling')
  const info = await sbx.files.getInfo('link')
  assert.equal(info.type, FileType.FILE)
  assert.ok(info.symlinkTarget.endsWith('/home/user/dir/deep/a.txt'))
  assert.equal(info.permissions[0], 'L')
})
await step('files.exists', async () => {
  assert.equal(await sbx.files.exists('dir'), true)
  assert.equal(await sbx.files.exists('dir/none'), false)
})
await step('files.makeDir', async () => {
  assert.equal(await sbx.files.makeDir('made/below'), true)
  assert.equal(await sbx.files.makeDir('made/below'), false)
})
await step('files.list', async () => {
  const names = (await sbx.files.list('dir')).map((e) => e.name + ':' + e.type)
  assert.deepEqual(names, ['deep:dir'])
  const deep = (await sbx.files.list('dir', { depth: 2 })).map((e) => e.name)
  assert.deepEqual(deep, ['deep', 'a.txt'])
})
await step('files.rename and remove', async () => {
  const moved = await sbx.files.rename('bin.dat', 'other/moved.dat')
  assert.equal(moved.name, 'moved.dat')
  await sbx.files.remove('other')
  assert.equal(await sbx.files.exists('other/moved.dat'), false)
})
await step('files.watchDir', async () => {
  const seen = []
  const handle = await sbx.files.watchDir('made', (ev) => seen.push(ev.type + ' ' + ev.name))
  await sbx.files.write('made/new.txt', 'x')
  await until(() => seen.includes('create new.txt') && seen.includes('write new.txt'))
  await handle.stop()
})

await step('commands.run', async () => {
  const r = await sbx.commands.run('echo out; echo err >&2; echo "$GIVEN $EXTRA"; pwd', { envs: { EXTRA: 'too' } })
  assert.equal(r.exitCode, 0)
  assert.ok(r.stdout.startsWith('out\nyes too\n'))
  assert.ok(r.stdout.trim().endsWith('/home/user'))
  assert.equal(r.stderr, 'err\n')
})
await step('commands.run with a failing command', async () => {
  await assert.rejects(() => sbx.commands.run('exit 7'), (e) => e instanceof CommandExitError && e.exitCode === 7)
})
await step('commands.run in a missing directory', async () => {
  await assert.rejects(() => sbx.commands.run('true', { cwd: '/no/such/dir' }), /does not exist/)
})
await step('commands.run as an unknown user', async () => {
  await assert.rejects(() => sbx.commands.run('true', { user: 'nobody-here' }), /username/)
})
await step('commands in the background, with input, listed and connected', async () => {
  let got = ''
  const h = await sbx.commands.run('cat', { background: true, stdin: true, onStdout: (d) => { got += d } })
  assert.ok((await sbx.commands.list()).some((p) => p.pid === h.pid))
  await sbx.commands.sendStdin(h.pid, 'ping\n')
  await until(() => got === 'ping\n')
  let second = ''
  const again = await sbx.commands.connect(h.pid, { onStdout: (d) => { second += d } })
  await sbx.commands.sendStdin(h.pid, 'pong\n')
  await until(() => second === 'pong\n' && got === 'ping\npong\n')
  await again.disconnect()
  await sbx.commands.closeStdin?.(h.pid)
  if (!sbx.commands.closeStdin) await h.kill()
  await h.wait().catch(() => {})
  assert.ok(!(await sbx.commands.list()).some((p) => p.pid === h.pid))
})
await step('commands.kill', async () => {
  const h = await sbx.commands.run('sleep 600', { background: true })
  assert.equal(await h.kill(), true)
  await assert.rejects(() => h.wait(), (e) => /signal: killed/.test(e.message + e.error))
  assert.equal(await sbx.commands.kill(h.pid), false)
})
await step('commands.run past its timeout', async () => {
  await assert.rejects(() => sbx.commands.run('sleep 600', { timeoutMs: 200 }), /timed out|timeout|deadline/i)
})

await step('pty: create, input, resize, exit', async () => {
  let out = ''
  const t = await sbx.pty.create({ cols: 91, rows: 23, onData: (d) => { out += Buffer.from(d).toString() } })
  await sbx.pty.sendInput(t.pid, Buffer.from('stty size; echo m"ar"k\n'))
  await until(() => out.includes('23 91') && out.includes('mark'))
  await sbx.pty.resize(t.pid, { cols: 120, rows: 40 })
  await sbx.pty.sendInput(t.pid, Buffer.from('stty size\n'))
  await until(() => out.includes('40 120'))
  await sbx.pty.sendInput(t.pid, Buffer.from('exit 3\n'))
  await assert.rejects(() => t.wait(), (e) => e.exitCode === 3)
})
await step('pty: kill', async () => {
  const t = await sbx.pty.create({ cols: 80, rows: 24, onData: () => {} })
  assert.equal(await sbx.pty.kill(t.pid), true)
  await assert.rejects(() => t.wait())
})

await step('sandbox.connect', async () => {
  const other = await Sandbox.connect(sbx.sandboxId)
  assert.equal(await other.files.read('dir/deep/a.txt'), 'héllo\n')
  await assert.rejects(() => Sandbox.connect('i00000000000000000000'), NotFoundError)
})
await step('sandbox.list by metadata', async () => {
  const decoy = await Sandbox.create('base', { metadata: { purpose: 'decoy' } })
  const page = await Sandbox.list({ query: { metadata: { purpose: 'sdk test & more' }, state: ['running'] } }).nextItems()
  assert.deepEqual(page.map((s) => s.sandboxId), [sbx.sandboxId])
  assert.equal(await Sandbox.kill(decoy.sandboxId), true)
})
await step('sandbox.list in pages', async () => {
  const more = await Promise.all([1, 2, 3].map(() => Sandbox.create('base', { metadata: { purpose: 'pages' } })))
  const pages = Sandbox.list({ limit: 2, query: { metadata: { purpose: 'pages' } } })
  const first = await pages.nextItems()
  assert.equal(first.length, 2)
  assert.equal(pages.hasNext, true)
  assert.equal((await pages.nextItems()).length, 1)
  assert.equal(pages.hasNext, false)
  await Promise.all(more.map((s) => s.kill()))
})
await step('sandbox.setTimeout and getInfo', async () => {
  await sbx.setTimeout(240_000)
  const info = await sbx.getInfo()
  assert.ok(info.endAt.getTime() - Date.now() > 200_000)
  assert.equal(info.metadata.purpose, 'sdk test & more')
})
await step('sandbox pause and resume', async () => {
  const pause = sbx.pause ?? sbx.betaPause
  await pause.call(sbx)
  assert.equal(await sbx.isRunning(), false)
  await Sandbox.connect(sbx.sandboxId)
  assert.equal(await sbx.isRunning(), true)
  assert.equal(await sbx.files.read('dir/deep/a.txt'), 'héllo\n')
})
await step('sandbox.kill', async () => {
  await sbx.kill()
  assert.equal(await sbx.isRunning(), false)
  assert.equal(await Sandbox.kill(sbx.sandboxId), false)
  await assert.rejects(() => sbx.files.read('dir/deep/a.txt'))
})
console.log('done')
process.exit(0)
