// Pages opened from a file may not start a worker: the search's then runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!doctype html>";
      frame.onload = () => this.begin(frame.contentWindow, String(address));
      (document.body || document.documentElement).append(frame);
    }
    async begin(frame, address) {
      const load = (source) =>
        new Promise((done, failed) => {
          const script = frame.document.createElement("script");
          Object.assign(script, { src: source, onload: done, onerror: failed });
          frame.document.head.append(script);
        });
      frame.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      frame.importScripts = async (...sources) => {
        for (const source of sources) await load(source);
      };
      await load(address);
      this.postMessage = (data) => frame.dispatchEvent(new frame.MessageEvent("message", { data }));
      this.waiting.forEach((data) => this.postMessage(data));
    }
    postMessage(data) {
      this.waiting.push(data);
    }
    terminate() {}
  };
}
