// Records are what a browser keeps of uploads beyond a reload, in the URL storage of
// tus-js-client (localStorage): one entry for each upload that the server has, under the
// fingerprint of its file. Files are not kept: no page can open a file by itself.

// finishedMax is how many finished uploads are remembered, so that their files are not sent again.
const finishedMax = 1000;

const keyPrefix = 'tus::';

export class Records {
  #storage; // of tus-js-client: findAllUploads, addUpload, removeUpload
  #endpoint;
  #entries = null; // a promise of the entries of this endpoint, lists by fingerprint; null before they are read
  #writes = Promise.resolve(); // the last write; writes run one after the other

  constructor(storage, endpoint) {
    this.#storage = storage;
    this.#endpoint = endpoint;
    globalThis.addEventListener?.('storage', () => { // another tab has written
      this.#entries = null;
    });
  }

  // unfinished returns the uploads to continue, in the order of their creation.
  async unfinished() {
    return (await this.#all()).filter((r) => !r.finished);
  }

  // urlOf returns the URL of the upload of a file, finished or not, or null.
  async urlOf(fingerprint) {
    return (await this.#read()).get(fingerprint)?.at(-1)?.uploadUrl ?? null;
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
      entry.creationTime = former?.creationTime ?? entry.creationTime;
      const urlStorageKey = await this.#storage.addUpload(fingerprint, entry);
      enter(await this.#read(), { ...entry, fingerprint, urlStorageKey });
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
    const entries = await this.#read();
    const former = entries.get(fingerprint) ?? [];
    const found = former.filter((r) => r.uploadUrl === url);
    const rest = former.filter((r) => r.uploadUrl !== url);
    if (rest.length > 0) {
      entries.set(fingerprint, rest);
    } else {
      entries.delete(fingerprint);
    }
    for (const r of found) {
      await this.#storage.removeUpload(r.urlStorageKey);
    }
    return found;
  }

  async #prune() {
    const finished = (await this.#all()).filter((r) => r.finished);
    for (const r of finished.slice(0, Math.max(0, finished.length - finishedMax))) {
      await this.#remove(r.fingerprint, r.uploadUrl);
    }
  }

  // all returns the entries, the oldest first.
  async #all() {
    return [...(await this.#read()).values()].flat().sort((a, b) => a.created - b.created);
  }

  // read returns the entries. They are read from the storage once: to look for one there takes as long as there are
  // entries, for each file that is added and each chunk that is sent.
  #read() {
    this.#entries ??= this.#load().catch((err) => {
      this.#entries = null; // the next call reads again
      throw err;
    });
    return this.#entries;
  }

  // load reads the storage. The key of an entry is tus::FINGERPRINT::NUMBER, and a fingerprint ends with the endpoint.
  async #load() {
    const entries = new Map();
    for (const r of await this.#storage.findAllUploads()) {
      const fingerprint = r.urlStorageKey.slice(keyPrefix.length, r.urlStorageKey.lastIndexOf('::'));
      if (fingerprint.endsWith(`-${this.#endpoint}`) && r.uploadUrl && r.metadata?.filename) {
        enter(entries, { ...r, fingerprint });
      }
    }
    return entries;
  }
}

// enter adds an entry to the list of its fingerprint.
function enter(entries, r) {
  const list = entries.get(r.fingerprint) ?? [];
  list.push({ ...r, created: Date.parse(r.creationTime) });
  entries.set(r.fingerprint, list);
}
