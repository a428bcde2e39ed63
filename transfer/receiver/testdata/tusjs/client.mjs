// Uploads a file with tus-js-client, as the scenario in its arguments says, and prints what
// happened as JSON: node client.mjs SCENARIO ENDPOINT FILE NAME STATE
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import * as tus from 'tus-js-client'

const [scenario, endpoint, file, name, state] = process.argv.slice(2)
const data = readFileSync(file)
const chunkSize = 256 * 1024
const requests = {}

function options(more) {
  return {
    endpoint,
    chunkSize,
    metadata: { filename: name },
    retryDelays: [],
    urlStorage: new tus.FileUrlStorage(state),
    storeFingerprintForResuming: true,
    removeFingerprintOnSuccess: true,
    onBeforeRequest: (req) => {
      requests[req.getMethod()] = (requests[req.getMethod()] ?? 0) + 1
      if (!['checksum', 'damaged'].includes(scenario) || req.getMethod() !== 'PATCH') return
      const from = Number(req.getHeader('Upload-Offset')) + (scenario === 'damaged')
      const sum = createHash('sha256').update(data.subarray(from, from + chunkSize))
      req.setHeader('Upload-Checksum', 'sha256 ' + sum.digest('base64'))
    },
    ...more,
  }
}

// upload starts an upload and resolves when it has ended, with its URL and, if it has failed, the
// status of the answer.
function upload(more, resume) {
  return new Promise((resolve, reject) => {
    const onError = (err) => {
      const status = err.originalResponse?.getStatus()
      if (!status) return reject(err)
      resolve({ url: u.url, status })
    }
    const u = new tus.Upload(data, options({ ...more, onError, onSuccess: () => resolve({ url: u.url }) }))
    if (!resume) return u.start()
    u.findPreviousUploads().then((found) => {
      if (found.length !== 1) return reject(new Error(`${found.length} previous uploads were found`))
      u.resumeFromPreviousUpload(found[0])
      u.start()
    }, reject)
  })
}

// abortAfter starts an upload, and aborts it when the server has a number of chunks. terminate
// deletes it there.
function abortAfter(chunks, terminate) {
  return new Promise((resolve, reject) => {
    const u = new tus.Upload(data, options({
      onError: reject,
      onSuccess: () => reject(new Error('it succeeded before it was aborted')),
      onChunkComplete: (_, accepted) => {
        if (accepted < chunks * chunkSize) return
        const { url } = u
        u.abort(terminate).then(() => resolve({ url }), reject)
      },
    }))
    u.start()
  })
}

let ended
if (scenario === 'abort' || scenario === 'terminate') {
  ended = await abortAfter(2, scenario === 'terminate')
} else {
  ended = await upload(scenario === 'parallel' ? { parallelUploads: 4 } : {}, scenario === 'resume')
}
console.log(JSON.stringify({ ...ended, requests }))
