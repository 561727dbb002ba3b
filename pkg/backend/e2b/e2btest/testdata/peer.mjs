// The published peer packages against the stand-in: one pass through each
// primitive. Usage: node peer.mjs DIR; AFIELD_CWD is the working directory in
// the sandbox. The addresses and the key come from the SDK's own variables.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const require = createRequire(path.join(process.argv[2], 'index.js'))
const load = (name) => import(pathToFileURL(require.resolve(name)))
const { Context } = await load('@deepseek-ai/cordis')
const { E2BSandboxService } = await load('@deepseek-ai/dsh-e2b')
const { default: E2BFileSystem } = await load('@deepseek-ai/dsh-fs-e2b')

const ctx = new Context()
const owner = await ctx.plugin(E2BSandboxService, { cwd: process.env.AFIELD_CWD, timeoutMs: 120_000 })
await ctx.plugin(E2BFileSystem, {})
const fs = await new Promise((done) => ctx.inject(['fs'], (c) => done(c.fs)))
const code = (c) => (e) => e.code === c

const file = await fs.resolve('notes/a.txt')
assert.equal(await fs.stat(file), undefined)
const made = await fs.writeText(file, 'one\ntwo\n', { kind: 'createIfAbsent' })
assert.equal(made.operation, 'create')
await assert.rejects(() => fs.writeText(file, 'x', { kind: 'createIfAbsent' }), code('FS_NOT_OBSERVED'))
assert.equal((await fs.stat(file)).version, made.version)
assert.equal(await fs.readText(file), 'one\ntwo\n')
let streamed = ''
for await (const piece of await fs.streamText(file)) streamed += piece
assert.equal(streamed, 'one\ntwo\n')
const edited = await fs.editText(file, { oldString: 'two', newString: 'three' }, { version: made.version })
assert.equal(edited.after, 'one\nthree\n')
await assert.rejects(
  () => fs.writeText(file, 'x', { kind: 'replaceIfVersion', version: made.version }),
  code('FS_STALE_VERSION'))
const replaced = await fs.writeText(file, 'last', { kind: 'replaceIfVersion', version: edited.version })
assert.equal(replaced.operation, 'update')
assert.equal((await fs.lstat('notes/a.txt')).type, 'file')
const names = (await fs.listDir(await fs.resolve('notes'))).map((e) => e.name + ':' + e.type)
assert.deepEqual(names, ['a.txt:file'])
await assert.rejects(async () => fs.readText(await fs.resolve('notes')), code('FS_NOT_REGULAR_FILE'))
await owner.dispose?.()
console.log('done')
process.exit(0)
