// Loaded into every node program (NODE_OPTIONS): sends fetch, http and https through the proxy that the variables name.
// Node takes no notice of them before version 24, and undici's own agent names the proxy, not the host, in its CONNECT.
'use strict'

const http = require('http')
const https = require('https')
const net = require('net')
const tls = require('tls')

const proxy = new URL(process.env.https_proxy || 'http://127.0.0.1:3128')
// A library that reads them would send a request for https to the proxy itself.
for (const name of ['http_proxy', 'https_proxy', 'all_proxy']) {
  delete process.env[name]
  delete process.env[name.toUpperCase()]
}
const direct = new http.Agent() // to the proxy itself
const place = { host: proxy.hostname, port: Number(proxy.port) }

function secured (host, port, options, callback) {
  const named = `${net.isIPv6(host) ? `[${host}]` : host}:${port}`
  const asking = http.request({ ...place, method: 'CONNECT', path: named, headers: { host: named }, agent: direct })
  asking.once('error', callback)
  asking.once('connect', (answer, socket, head) => {
    if (answer.statusCode !== 200) {
      let said = head.toString()
      socket.on('data', (data) => { said += data })
      socket.once('close', () => callback(new Error(`the gateway refused ${named}: ${said.slice(0, 1000)}`)))
      return
    }
    const servername = net.isIP(host) ? '' : host
    const made = tls.connect({ ...options, socket, servername, ALPNProtocols: ['http/1.1'] })
    const failed = (error) => callback(error)
    made.once('error', failed)
    made.once('secureConnect', () => {
      made.removeListener('error', failed)
      callback(null, made)
    })
  })
  asking.end()
}

class Plain extends http.Agent {
  addRequest (request, options, ...rest) {
    if (!options.socketPath) {
      request.path = `http://${request.getHeader('host')}${request.path}`
      options = { ...options, ...place }
    }
    return super.addRequest(request, options, ...rest)
  }
}

class Secured extends https.Agent {
  createConnection (options, callback) {
    secured(options.host, options.port || 443, options, callback)
  }
}

http.globalAgent = new Plain({ keepAlive: true })
https.globalAgent = new Secured({ keepAlive: true })

try {
  const { Agent, setGlobalDispatcher } = require('/usr/share/nodejs/undici') // not one that a profile brings

  class Fetching extends Agent {
    dispatch (options, handler) {
      const { protocol, origin } = new URL(options.origin)
      return super.dispatch(protocol === 'http:' ? { ...options, path: origin + options.path } : options, handler)
    }
  }

  setGlobalDispatcher(new Fetching({
    connect ({ protocol, hostname, port }, callback) {
      if (protocol === 'https:') {
        secured(hostname, port || 443, {}, callback)
        return
      }
      const socket = net.connect(place)
      const failed = (error) => callback(error, null)
      socket.once('error', failed)
      socket.once('connect', () => {
        socket.removeListener('error', failed)
        callback(null, socket)
      })
    }
  }))
} catch (error) {
  if (error.code !== 'MODULE_NOT_FOUND') throw error
}
