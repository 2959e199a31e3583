// E2B's client of JavaScript against Cellblock, as its documentation uses it.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'

import { Sandbox } from '@e2b/code-interpreter'

let sandbox

before(async () => {
  sandbox = await Sandbox.create({ timeoutMs: 120_000, metadata: { suite: 'js' } })
})

after(async () => {
  assert.equal(await sandbox.kill(), true)
  assert.equal(await sandbox.isRunning(), false)
})

test('code keeps its state and streams', async () => {
  await sandbox.runCode('x = 20')
  const lines = []
  const execution = await sandbox.runCode('print("hi")\nx + 1', { onStdout: (it) => lines.push(it.line) })
  assert.equal(execution.text, '21')
  assert.deepEqual(lines, ['hi\n'])
  const failed = await sandbox.runCode('1 / 0')
  assert.equal(failed.error.name, 'ZeroDivisionError')
  const other = await sandbox.runCode('[1, 2].map((it) => it * 2)', { language: 'js' })
  assert.equal(other.text, '[2, 4]')
})

test('contexts are apart', async () => {
  const context = await sandbox.createCodeContext({ language: 'python' })
  const execution = await sandbox.runCode('x', { context })
  assert.equal(execution.error.name, 'NameError')
  await sandbox.removeCodeContext(context)
})

test('files and directories', async () => {
  await sandbox.files.write('d/a.txt', 'one')
  assert.equal(await sandbox.files.read('d/a.txt'), 'one')
  assert.deepEqual((await sandbox.files.list('d')).map((it) => it.name), ['a.txt'])
  const seen = new Promise((resolve) => {
    sandbox.files.watchDir('d', (event) => resolve(event.name)).then(() => sandbox.files.write('d/b.txt', 'x'))
  })
  assert.equal(await seen, 'b.txt')
  await sandbox.files.remove('d')
  assert.equal(await sandbox.files.exists('d'), false)
})

test('commands', async () => {
  const result = await sandbox.commands.run('echo out; echo err >&2; pwd')
  assert.deepEqual([result.stdout, result.stderr, result.exitCode], ['out\n/home/user\n', 'err\n', 0])
  const handle = await sandbox.commands.run('cat', { background: true, stdin: true })
  await sandbox.commands.sendStdin(handle.pid, 'typed\n')
  await sandbox.commands.closeStdin(handle.pid)
  assert.equal((await handle.wait()).stdout, 'typed\n')
})

test('terminals', async () => {
  let output = ''
  const terminal = await sandbox.pty.create({ cols: 80, rows: 24, onData: (it) => (output += new TextDecoder().decode(it)) })
  await sandbox.pty.resize(terminal.pid, { cols: 100, rows: 30 })
  await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode('stty size; exit 0\n'))
  await terminal.wait()
  assert.match(output, /30 100/)
})

test('forks and snapshots', async () => {
  const source = await Sandbox.create({ timeoutMs: 120_000 })
  try {
    await source.runCode('x = 41')
    await source.files.write('a.txt', 'one')
    const [fork] = await source.fork()
    assert.equal((await fork.runCode('x + 1')).text, '42')
    assert.equal(await fork.kill(), true)
    const { snapshotId } = await source.createSnapshot()
    const again = await Sandbox.create(snapshotId, { timeoutMs: 60_000 })
    assert.equal((await again.runCode('x')).text, '41')
    assert.equal(await again.files.read('a.txt'), 'one')
    assert.equal(await again.kill(), true)
    const listed = await Sandbox.listSnapshots({ sandboxId: source.sandboxId }).nextItems()
    assert.deepEqual(listed.map((it) => it.snapshotId), [snapshotId])
    assert.equal(await Sandbox.deleteSnapshot(snapshotId), true)
    assert.equal(await Sandbox.deleteSnapshot(snapshotId), false)
  } finally {
    await source.kill()
  }
})

test('lists and timeouts', async () => {
  const paginator = Sandbox.list({ query: { metadata: { suite: 'js' } } })
  const ids = (await paginator.nextItems()).map((it) => it.sandboxId)
  assert.ok(ids.includes(sandbox.sandboxId))
  await sandbox.setTimeout(200_000)
  const info = await sandbox.getInfo()
  assert.ok(info.endAt.getTime() > Date.now() + 150_000)
})
