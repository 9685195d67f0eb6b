// An agent's client, made from the proto at run time: node client.cjs PROTO SOCKET TOKEN COMMAND ARGUMENT…
//
// Prints one JSON object a line. Commands: whoami; execute FOLDER PROGRAM ASK-SECONDS; person [METHOD…] (calls each, or
// every method of the Person service with an empty request, and prints how it ended); get ACTION-ID.
"use strict";

const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const [proto, socket, token, command, ...args] = process.argv.slice(2);
const definition = loader.loadSync(proto, { keepCase: true, longs: Number, enums: String, defaults: true, oneofs: true });
const goex = grpc.loadPackageDefinition(definition).goex.v1;
const credentials = grpc.credentials.createInsecure();
const metadata = new grpc.Metadata();
if (token) metadata.set("authorization", `Bearer ${token}`);

const say = (value) => process.stdout.write(JSON.stringify(value) + "\n");
const nameOf = (error) => grpc.status[error.code] ?? String(error.code);

function fail(error) {
  say({ error: nameOf(error), details: error.details });
  process.exitCode = 1;
}

function unary(client, method, request, done) {
  client[method](request, metadata, { deadline: Date.now() + 30_000 }, done);
}

function execute(client, [folder, program, seconds]) {
  const request = { files: { folder, language: "shell", program }, ask_seconds: Number(seconds) };
  const events = client.Execute(request, metadata);
  events.on("data", (event) => {
    if (event.what === "asking") say({ asking: event.asking.id, action: event.action_id });
    if (event.what === "finished") {
      const { action, problem } = event.finished;
      say({ finished: action.state, action: action.id, problem: problem ? problem.code : "", agent: action.agent });
    }
  });
  events.on("error", (error) => {
    fail(error);
    client.close();
  });
  events.on("end", () => client.close());
}

function person(client, methods) {
  const [method, ...rest] = methods;
  if (method === undefined) return client.close();
  const each = client[method]({}, metadata, { deadline: Date.now() + 30_000 }, (error) => {
    say({ method, code: error ? nameOf(error) : "OK" });
    person(client, rest);
  });
  if (goex.Person.service[method].responseStream) {
    each.on("data", () => {});
    each.on("error", (error) => {
      say({ method, code: nameOf(error) });
      person(client, rest);
    });
  }
  return undefined;
}

const actions = new goex.Actions(`unix:${socket}`, credentials);
if (command === "execute") execute(actions, args);
else if (command === "person") {
  const methods = Object.keys(goex.Person.service).filter((name) => /^[A-Z]/.test(name));
  const wanted = methods.filter((name) => args.length === 0 || args.includes(name));
  person(new goex.Person(`unix:${socket}`, credentials), wanted);
  actions.close();
} else {
  const [method, request] = command === "get" ? ["Get", { id: args[0] }] : ["Whoami", {}];
  unary(actions, method, request, (error, reply) => {
    if (error) fail(error);
    else say(reply);
    actions.close();
  });
}
