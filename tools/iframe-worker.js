// The search runs in a worker. A browser starts none for a page that is opened as a file: a hidden frame does the work there.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      this.inside = new Promise(resolve => {
        const frame = document.createElement("iframe")
        frame.hidden = true
        frame.addEventListener("load", () => {
          const inside = frame.contentWindow
          const script = inside.document.createElement("script")
          script.src = address
          script.addEventListener("load", () => resolve(inside))
          inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", {data}))
          inside.document.head.append(script)
        }, {once: true})
        document.body.append(frame)
      })
    }
    postMessage(data) {
      this.inside.then(inside => inside.dispatchEvent(new inside.MessageEvent("message", {data})))
    }
  }
}
