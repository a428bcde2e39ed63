// Records are what a browser keeps of uploads beyond a reload, in the URL storage of
// tus-js-client (localStorage): one entry for each upload that the server has, under the
// fingerprint of its file. Files are not kept: no page can open a file by itself.

// finishedMax is how many finished uploads are remembered, so that their files are not sent again.
const finishedMax = 1000;

const keyPrefix = 'tus::';

export class Records {
  #storage; // of tus-js-client: findAllUploads, findUploadsByFingerprint, addUpload, removeUpload
  #endpoint;
  #writes = Promise.resolve(); // the last write; writes run one after the other

  constructor(storage, endpoint) {
    this.#storage = storage;
    this.#endpoint = endpoint;
  }

  // unfinished returns the uploads to continue, in the order of their creation.
  async unfinished() {
    return (await this.#all()).filter((r) => !r.finished);
  }

  // urlOf returns the URL of the upload of a file, finished or not, or null.
  async urlOf(fingerprint) {
    const found = await this.#storage.findUploadsByFingerprint(fingerprint);
    return found.at(-1)?.uploadUrl ?? null;
  }

  // save writes the entry of a transfer that has a URL. It never fails: without room in the
  // storage a reload loses the upload, and nothing else.
  save(transfer) {
    const { fingerprint, url } = transfer;
    const entry = {
      uploadUrl: url,
      size: transfer.size,
      metadata: { filename: transfer.name },
      priority: transfer.priority,
      accepted: transfer.accepted,
      finished: transfer.state === 'succeeded',
      creationTime: new Date().toISOString(),
    };
    return this.#write(async () => {
      const [former] = await this.#remove(fingerprint, url);
      await this.#storage.addUpload(fingerprint, { ...entry, creationTime: former?.creationTime ?? entry.creationTime });
      if (entry.finished) {
        await this.#prune();
      }
    });
  }

  // forget removes the entry of an upload.
  forget(fingerprint, url) {
    return this.#write(() => this.#remove(fingerprint, url));
  }

  #write(change) {
    this.#writes = this.#writes.then(change).catch(() => {});
    return this.#writes;
  }

  async #remove(fingerprint, url) {
    const found = (await this.#storage.findUploadsByFingerprint(fingerprint)).filter((r) => r.uploadUrl === url);
    for (const r of found) {
      await this.#storage.removeUpload(r.urlStorageKey);
    }
    return found;
  }

  async #prune() {
    const finished = (await this.#all()).filter((r) => r.finished);
    for (const r of finished.slice(0, Math.max(0, finished.length - finishedMax))) {
      await this.#storage.removeUpload(r.urlStorageKey);
    }
  }

  // all returns the entries of this endpoint, the oldest first. The key of an entry is
  // tus::FINGERPRINT::NUMBER, and a fingerprint ends with the endpoint.
  async #all() {
    const all = (await this.#storage.findAllUploads()).map((r) => ({
      ...r,
      fingerprint: r.urlStorageKey.slice(keyPrefix.length, r.urlStorageKey.lastIndexOf('::')),
    }));
    return all
      .filter((r) => r.fingerprint.endsWith(`-${this.#endpoint}`) && r.uploadUrl && r.metadata?.filename)
      .sort((a, b) => Date.parse(a.creationTime) - Date.parse(b.creationTime));
  }
}
