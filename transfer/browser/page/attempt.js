// An Attempt sends one file by tus-js-client, from where the server is, until the upload is
// complete, a request fails, or the attempt is stopped. It reports the first of the former two
// once, and nothing after a stop. A creation that is under way at a stop is not aborted: the
// server may have made the upload already, and its URL is needed to continue or remove it.

// Statuses of answers after which the same request may succeed later; so may it after all of 500
// and above, and if there was no answer (0).
const temporary = new Set([0, 408, 409, 423, 425, 429, 460]);

export class Attempt {
  #upload;
  #stopped = false;
  #creating = false;
  #status = 0; // of the last answer; 0 if there is none to the last request
  #busy = 0; // seconds that the last answer, a 503, asks to wait

  // options: Upload, the class of tus-js-client; file; url of the upload, or null to create one;
  // endpoint; metadata; chunkSize in bytes; headers, a function that returns those of a request.
  // on: the functions url(url), progress(sent, confirmed), success() and failure(failure), where
  // a failure has the status, a message, whether it is temporary or the file unreadable, and the seconds for which the
  // server says that it is busy.
  constructor(options, on) {
    this.#upload = new options.Upload(options.file, {
      endpoint: options.endpoint,
      uploadUrl: options.url,
      metadata: options.metadata,
      chunkSize: options.chunkSize,
      retryDelays: null, // the scheduler repeats attempts, so that a delay takes no slot
      storeFingerprintForResuming: false, // the scheduler writes the records
      // The creation of an empty file would complete it, and would make another file when it is repeated. If its
      // length comes later, a request that can be repeated completes it.
      uploadLengthDeferred: options.file.size === 0,
      onBeforeRequest: (req) => this.#before(req, options.headers(), on),
      onAfterResponse: (req, res) => this.#after(req, res),
      onUploadUrlAvailable: () => {
        this.#creating = false;
        if (this.#stopped) {
          this.#upload.abort();
        }
        on.url(this.#upload.url);
      },
      onProgress: (sent) => this.#stopped || on.progress(sent),
      onChunkComplete: (_size, confirmed) => this.#stopped || on.progress(confirmed, confirmed),
      onSuccess: () => this.#stopped || on.success(),
      onError: (err) => this.#fail(err, options.file, on),
    });
  }

  start() {
    this.#upload.start();
  }

  stop() {
    this.#stopped = true;
    if (!this.#creating) {
      this.#upload.abort();
    }
  }

  // before runs before each request. tus-js-client forgets an abort that comes between start and
  // the first request; the error keeps that request from being sent.
  #before(req, headers, on) {
    if (this.#stopped) {
      throw new Error('the attempt was stopped');
    }
    this.#status = 0;
    this.#busy = 0;
    this.#creating = req.getMethod() === 'POST';
    for (const [name, value] of Object.entries(headers)) {
      req.setHeader(name, value);
    }
    if (req.getMethod() === 'PATCH') {
      const offset = Number(req.getHeader('Upload-Offset'));
      on.progress(offset, offset);
    }
  }

  // after refuses answers after which tus-js-client would create the upload anew although the
  // server may still have it.
  #after(req, res) {
    this.#status = res.getStatus();
    this.#busy = this.#status === 503 ? Number(res.getHeader('Retry-After')) || 0 : 0;
    if (req.getMethod() === 'HEAD' && this.#status >= 400 && this.#status !== 404 && this.#status !== 410) {
      throw new Error(`the server answers ${this.#status}`);
    }
  }

  async #fail(err, file, on) {
    this.#creating = false;
    if (this.#stopped) {
      return;
    }
    const readable = this.#status !== 0 || (await isReadable(file));
    if (this.#stopped) {
      return;
    }
    const body = err.originalResponse?.getBody()?.trim();
    on.failure({
      status: this.#status,
      temporary: readable && (temporary.has(this.#status) || this.#status >= 500),
      unreadable: !readable,
      busy: Math.min(this.#busy, 3600),
      message: !readable
        ? 'The file has changed or cannot be read any more. Choose it again.'
        : this.#status === 0
          ? err.originalRequest ? 'The server cannot be reached.' : err.message
          : `The server answers ${this.#status}${body ? `: ${body}` : ''}`,
    });
  }
}

// isReadable reports whether the browser can still read a file: it refuses files that have
// changed since they were chosen.
async function isReadable(file) {
  try {
    await file.slice(0, 1).arrayBuffer();
    return true;
  } catch {
    return false;
  }
}
