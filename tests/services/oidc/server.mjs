// The authorization server that tests log in to: oidc-provider, set up as a strict public service would be, with the
// pages that a person sees and a small notes API behind its tokens.
//
// One line of JSON on stdin configures it (see tests/services/oidc.py). Further lines order faults: an answer that comes
// late, or that is never sent although the request was carried out, or an access token that is forgotten early. It ends
// with its stdin. Each line on stdout is JSON: first the port, then what was asked of the endpoints, never a token.
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { createRequire } from 'node:module';
import path from 'node:path';
import readline from 'node:readline';
import { pathToFileURL } from 'node:url';

const require = createRequire(path.join(process.env.GOEX_OIDC_MODULES, 'index.js'));
const { default: Provider, errors } = await import(pathToFileURL(require.resolve('oidc-provider')));

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const setup = JSON.parse((await lines.next()).value);
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';

const say = (facts) => process.stdout.write(`${JSON.stringify(facts)}\n`);

// What the server remembers, on disk before it answers: it may be killed and started again.
const remembered = fs.existsSync(setup.store) ? JSON.parse(fs.readFileSync(setup.store, 'utf8')) : {};

function remember() {
  fs.writeFileSync(`${setup.store}.new`, JSON.stringify(remembered));
  fs.renameSync(`${setup.store}.new`, setup.store);
}

class Store {
  constructor(model) {
    this.model = model;
  }

  async upsert(id, payload, seconds) {
    remembered[`${this.model}:${id}`] = { payload, until: seconds ? Date.now() + seconds * 1000 : null };
    remember();
  }

  async find(id) {
    const found = remembered[`${this.model}:${id}`];
    // Copied: the library changes what it is given.
    return found && !(found.until && found.until < Date.now()) ? structuredClone(found.payload) : undefined;
  }

  async #where(key, value) {
    const found = Object.entries(remembered).find(
      ([name, each]) => name.startsWith(`${this.model}:`) && each.payload[key] === value,
    );
    return found && this.find(found[0].slice(this.model.length + 1));
  }

  async findByUid(uid) {
    return this.#where('uid', uid);
  }

  async findByUserCode(code) {
    return this.#where('userCode', code);
  }

  async consume(id) {
    remembered[`${this.model}:${id}`].payload.consumed = Math.floor(Date.now() / 1000);
    remember();
  }

  async destroy(id) {
    delete remembered[`${this.model}:${id}`];
    remember();
  }

  async revokeByGrantId(grant) {
    for (const [name, each] of Object.entries(remembered)) {
      if (each.payload.grantId === grant && !name.startsWith('Grant:')) delete remembered[name];
    }
    remember();
  }
}

const provider = new Provider(setup.issuer, {
  adapter: Store,
  clients: setup.clients,
  jwks: setup.jwks,
  cookies: { keys: [setup.cookie_key] },
  scopes: ['openid', 'offline_access', ...setup.scopes],
  claims: { openid: ['sub'] },
  pkce: { required: () => true },
  rotateRefreshToken: setup.rotate,
  issueRefreshToken: async (ctx, client, code) => client.grantTypeAllowed('refresh_token')
    && (!setup.offline || code.scopes.has('offline_access')),
  expiresWithSession: async () => false,
  findAccount: async (ctx, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
  interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
  features: {
    devInteractions: { enabled: false },
    deviceFlow: { enabled: setup.device, charset: 'base-20', mask: '****-****' },
    clientCredentials: { enabled: true },
    introspection: { enabled: true },
    registration: { enabled: setup.registration },
    revocation: { enabled: setup.revocation },
    userinfo: { enabled: true },
    // RFC 8707: a token that is asked for one of these is for that alone, and says so.
    resourceIndicators: {
      enabled: Object.keys(setup.resources).length > 0,
      getResourceServerInfo: (ctx, resource) => {
        const scope = setup.resources[resource];
        if (scope === undefined) throw new errors.InvalidTarget();
        return { scope, audience: resource, accessTokenFormat: 'jwt', accessTokenTTL: setup.access_seconds };
      },
    },
  },
  ttl: {
    AccessToken: setup.access_seconds,
    ClientCredentials: setup.access_seconds,
    AuthorizationCode: 60,
    DeviceCode: setup.device_seconds,
    RefreshToken: setup.refresh_seconds,
    IdToken: 3600,
    Grant: 86400,
    Session: 86400,
    Interaction: 600,
  },
});

// Token exchange (RFC 8693) isn't the library's: this is the part of it that narrows the caller's own access token.
async function exchange(ctx) {
  const { subject_token: subject, subject_token_type: kind, scope } = ctx.oidc.params;
  if (kind !== ACCESS_TOKEN) throw new errors.InvalidRequest('only access tokens are exchanged');
  const from = await provider.AccessToken.find(subject);
  if (!from || from.clientId !== ctx.oidc.client.clientId) throw new errors.InvalidGrant('subject_token is not valid');
  const wanted = scope ? scope.split(' ') : [...from.scopes];
  const wider = wanted.filter((each) => !from.scopes.has(each));
  if (wider.length) throw new errors.InvalidScope('the subject token has less scope', wider.join(' '));
  const token = new provider.AccessToken({
    accountId: from.accountId, client: ctx.oidc.client, grantId: from.grantId, gty: 'token-exchange',
    scope: wanted.join(' '), claims: from.claims, expiresWithSession: false,
  });
  ctx.body = {
    access_token: await token.save(Math.min(setup.access_seconds, from.remainingTTL)),
    issued_token_type: ACCESS_TOKEN, token_type: 'Bearer', expires_in: token.expiration, scope: wanted.join(' '),
  };
}
if (setup.exchange) {
  provider.registerGrantType(EXCHANGE, exchange, [
    'subject_token', 'subject_token_type', 'requested_token_type', 'audience', 'resource', 'scope',
  ]);
}

// ---- faults of the network, ordered by the test ----

const faults = [];
const held = [];  // what comes late, until then or until it is ordered

async function faulty(ctx, next) {
  const at = faults.findIndex((each) => each.path === ctx.path && each.times > 0);
  const fault = at >= 0 ? faults[at] : undefined;
  if (fault && --fault.times === 0) faults.splice(at, 1);
  if (fault?.late) {
    await new Promise((done) => {
      held.push([ctx.path, done]);
      setTimeout(done, fault.late * 1000);
    });
  }
  await next();
  if (ctx.body?.device_code) ctx.body.interval = 1; // else a login waits for five seconds
  const asked = ctx.oidc?.body ?? {};
  say({
    path: ctx.path, method: ctx.method, status: ctx.status, grant_type: asked.grant_type, scope: asked.scope,
    client: ctx.oidc?.client?.clientId, error: ctx.body?.error, resource: asked.resource,
  });
  if (fault?.drop) {
    ctx.respond = false;
    ctx.res.destroy();
  }
}

// ---- what a person sees ----

const safe = (text) => String(text).replace(/[&<>"']/g, (mark) => `&#${mark.charCodeAt(0)};`);
const page = (title, body) => `<!DOCTYPE html><title>${title}</title><h1>${title}</h1>${body}`;

async function form(ctx) {
  const chunks = [];
  for await (const chunk of ctx.req) chunks.push(chunk);
  return new URLSearchParams(Buffer.concat(chunks).toString());
}

async function interact(ctx, next) {
  const found = /^\/interaction\/([\w-]+)$/.exec(ctx.path);
  if (!found) return next();
  const { prompt, params, session, grantId } = await provider.interactionDetails(ctx.req, ctx.res);
  const ofResources = Object.entries(prompt.details.missingResourceScopes ?? {});
  const missing = [...(prompt.details.missingOIDCScope ?? []), ...ofResources.flatMap(([, scopes]) => scopes)];
  if (ctx.method === 'GET') {
    const wanted = missing.map((each) => `<label><input type="checkbox" name="scope" value="${safe(each)}" checked> ${safe(each)}</label>`);
    ctx.type = 'html';
    ctx.body = prompt.name === 'login'
      ? page('Sign in', '<form method="post"><input name="login"><input name="password" type="password"><button>Sign in</button></form>')
      : page('Consent', `<p>${safe(params.client_id)} asks for:</p><form method="post">${wanted.join('')}<button name="answer" value="allow">Allow</button><button name="answer" value="deny">Deny</button></form>`);
    return undefined;
  }
  const answer = await form(ctx);
  let result;
  if (answer.get('answer') === 'deny') {
    result = { error: 'access_denied', error_description: 'the person said no' };
  } else if (prompt.name === 'login') {
    result = { login: { accountId: answer.get('login') || 'nobody' } };
  } else {
    const grant = grantId
      ? await provider.Grant.find(grantId)
      : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
    const ticked = new Set(answer.getAll('scope'));
    const no = missing.filter((each) => !ticked.has(each));
    const yes = missing.filter((each) => ticked.has(each));
    if (yes.length) grant.addOIDCScope(yes.join(' '));
    for (const [resource, scopes] of ofResources) {
      grant.addResourceScope(resource, scopes.filter((each) => ticked.has(each)).join(' '));
    }
    if (no.length) grant.rejectOIDCScope(no.join(' '));
    result = { consent: { grantId: await grant.save() } };
  }
  ctx.respond = false;
  await provider.interactionFinished(ctx.req, ctx.res, result, { mergeWithLastSubmission: true });
  return undefined;
}

// ---- the API that the tokens open ----

const notes = new Map();

async function api(ctx, next) {
  if (!ctx.path.startsWith('/api/')) return next();
  const bearer = /^Bearer (.+)$/i.exec(ctx.get('authorization'))?.[1];
  const token = bearer
    && ((await provider.AccessToken.find(bearer)) ?? (await provider.ClientCredentials.find(bearer)));
  const refuse = (status, error) => {
    ctx.status = status;
    ctx.set('www-authenticate', `Bearer error="${error}"`);
    ctx.body = { error };
  };
  if (!token) return refuse(401, 'invalid_token');
  const [, , what, id] = ctx.path.split('/');
  const needed = { GET: 'notes.read', POST: 'notes.write', DELETE: 'notes.delete' }[ctx.method];
  if (what === 'me' && ctx.method === 'GET') {
    ctx.body = { sub: token.accountId ?? null, client: token.clientId, scope: [...token.scopes].sort().join(' ') };
  } else if (what !== 'notes' || !needed) {
    ctx.status = 404;
  } else if (!token.scopes.has(needed)) {
    refuse(403, 'insufficient_scope');
  } else if (ctx.method === 'GET') {
    ctx.body = { notes: [...notes.values()].filter((each) => !id || each.id === id) };
  } else if (ctx.method === 'POST') {
    const chunks = [];
    for await (const chunk of ctx.req) chunks.push(chunk);
    const note = { id: String(notes.size + 1), text: String(JSON.parse(Buffer.concat(chunks).toString() || '{}').text ?? '') };
    notes.set(note.id, note);
    ctx.status = 201;
    ctx.body = note;
  } else {
    ctx.status = notes.delete(id) ? 204 : 404;
  }
  return undefined;
}

provider.use(faulty);
provider.use(interact);
provider.use(api);
provider.on('server_error', (ctx, error) => say({ path: ctx.path, fault: String(error.stack) }));

const server = setup.tls
  ? https.createServer({ key: setup.tls.key, cert: setup.tls.cert }, provider.callback())
  : http.createServer(provider.callback());
server.listen(setup.port, '127.0.0.1', () => say({ port: server.address().port }));

for await (const line of lines) {
  const order = JSON.parse(line);
  if (order.forget) await provider.AccessToken.adapter.destroy(order.forget);
  else if (order.now) held.forEach(([path, done]) => { if (path === order.now) done(); });
  else if (order.resources) setup.resources = order.resources;
  else if (!order.seen) faults.push(order);
  say({ ordered: true });
}
process.exit(0);
