// ComputeSDK's provider for E2B, which finds Cellblock by E2B's variables. Its suite for providers is not published; these are its operations.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'

import { e2b } from '@computesdk/e2b'

const provider = e2b({ apiKey: process.env.E2B_API_KEY })
let sandbox

before(async () => {
  sandbox = await provider.sandbox.create({ timeout: 120_000, envs: { GREETING: 'hello' } })
})

after(() => sandbox.destroy())

test('commands run with their environment, directory and exit code', async () => {
  const options = { env: { NAME: 'it\'s "me"' }, cwd: '/tmp' }
  // It sets variables for the first program of a command.
  const ran = await sandbox.runCommand('printenv NAME GREETING; pwd; echo bad >&2; exit 3', options)
  assert.deepEqual([ran.stdout, ran.stderr, ran.exitCode], ['it\'s "me"\nhello\n/tmp\n', 'bad\n', 3])
})

test('files are written, read, listed and removed', async () => {
  const { filesystem } = sandbox
  await filesystem.mkdir('/home/user/data')
  await filesystem.writeFile('/home/user/data/a.txt', 'one é')
  assert.equal(await filesystem.readFile('/home/user/data/a.txt'), 'one é')
  assert.deepEqual((await filesystem.readdir('/home/user/data')).map(({ name }) => name), ['a.txt'])
  await filesystem.remove('/home/user/data/a.txt')
  assert.equal(await filesystem.exists('/home/user/data/a.txt'), false)
})

test('a sandbox is found by its id and in the list until it is destroyed', async () => {
  const made = await provider.sandbox.create()
  const ids = async () => (await provider.sandbox.list()).map(({ sandboxId }) => sandboxId)
  assert.ok((await ids()).includes(made.sandboxId))
  const found = await provider.sandbox.getById(made.sandboxId)
  assert.equal((await found.runCommand('echo again')).stdout, 'again\n')
  await made.destroy()
  assert.equal(await provider.sandbox.getById(made.sandboxId), null)
})

test('a sandbox begins from a snapshot', async () => {
  await sandbox.filesystem.writeFile('/home/user/kept.txt', 'kept')
  const { id } = await provider.snapshot.create(sandbox.sandboxId)
  const made = await provider.sandbox.create({ snapshotId: id })
  assert.equal(await made.filesystem.readFile('/home/user/kept.txt'), 'kept')
  await made.destroy()
})
