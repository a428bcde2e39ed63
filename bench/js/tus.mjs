// Uploads a file with tus-js-client, and prints for how many seconds that took:
// node tus.mjs ENDPOINT FILE PARALLEL
import { createReadStream } from 'node:fs'
import * as tus from 'tus-js-client'

const [endpoint, file, parallel] = process.argv.slice(2)
const start = performance.now()
await new Promise((resolve, reject) => {
  new tus.Upload(createReadStream(file), {
    endpoint,
    parallelUploads: Number(parallel),
    metadata: { filename: 'file' },
    retryDelays: null,
    onSuccess: resolve,
    onError: reject,
  }).start()
})
console.log((performance.now() - start) / 1000)
