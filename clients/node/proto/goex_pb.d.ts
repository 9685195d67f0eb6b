// Made from protos/goex/v1/goex.proto by protos/generate.py. Don't edit.

import type { Message } from "@bufbuild/protobuf";
import type { GenMessage, GenService } from "@bufbuild/protobuf/codegenv2";

export type Call = Message<"goex.v1.Call"> & {
  service: string;
  method: string;
  argumentsJson: string;
  account: string;
};
export const CallSchema: GenMessage<Call>;

export type Calls = Message<"goex.v1.Calls"> & {
  calls: Call[];
};
export const CallsSchema: GenMessage<Calls>;

export type FilesProgram = Message<"goex.v1.FilesProgram"> & {
  folder: string;
  language: string;
  program: string;
  undo: string;
  preview: string;
  more: string[];
};
export const FilesProgramSchema: GenMessage<FilesProgram>;

export type SqlProgram = Message<"goex.v1.SqlProgram"> & {
  database: string;
  statements: string;
  policy: string;
  undo: string;
};
export const SqlProgramSchema: GenMessage<SqlProgram>;

export type MongoProgram = Message<"goex.v1.MongoProgram"> & {
  database: string;
  operationsJson: string[];
};
export const MongoProgramSchema: GenMessage<MongoProgram>;

export type Task = Message<"goex.v1.Task"> & {
  title: string;
  allows: Allowance[];
  seconds: number;
  agent: string;
};
export const TaskSchema: GenMessage<Task>;

export type Allowance = Message<"goex.v1.Allowance"> & {
  service: string;
  method: string;
  account: string;
  argumentsJson: string;
  times: number;
};
export const AllowanceSchema: GenMessage<Allowance>;

export type CodeProgram = Message<"goex.v1.CodeProgram"> & {
  language: string;
  program: string;
  services: string[];
  methods: string[];
  profile: string;
  again: string;
};
export const CodeProgramSchema: GenMessage<CodeProgram>;

export type FindRequest = Message<"goex.v1.FindRequest"> & {
  query: string;
  service: string;
  method: string;
  offset: number;
  limit: number;
};
export const FindRequestSchema: GenMessage<FindRequest>;

export type FoundService = Message<"goex.v1.FoundService"> & {
  name: string;
  title: string;
  accounts: string[];
  methods: number;
};
export const FoundServiceSchema: GenMessage<FoundService>;

export type FoundMethod = Message<"goex.v1.FoundMethod"> & {
  id: string;
  description: string;
  risk: string;
  undo: string;
  parametersJson: string;
  accounts: string[];
  lacks: string;
};
export const FoundMethodSchema: GenMessage<FoundMethod>;

export type FindReply = Message<"goex.v1.FindReply"> & {
  services: FoundService[];
  databases: string[];
  folders: string[];
  methods: FoundMethod[];
  nextOffset: number;
  unconnected: number;
  vault: string;
};
export const FindReplySchema: GenMessage<FindReply>;

export type ResultRequest = Message<"goex.v1.ResultRequest"> & {
  id: string;
  path: string;
  fields: string[];
  offset: bigint;
  limit: number;
  maxBytes: number;
};
export const ResultRequestSchema: GenMessage<ResultRequest>;

export type ResultReply = Message<"goex.v1.ResultReply"> & {
  valueJson: string;
  total: bigint;
  nextOffset: bigint;
  cut: boolean;
};
export const ResultReplySchema: GenMessage<ResultReply>;

export type MapRequest = Message<"goex.v1.MapRequest"> & {
  intent: string;
  explain: boolean;
  answer: string;
};
export const MapRequestSchema: GenMessage<MapRequest>;

export type Candidate = Message<"goex.v1.Candidate"> & {
  calls: Call[];
  scopes: string[];
  votes: number;
  score: number;
};
export const CandidateSchema: GenMessage<Candidate>;

export type Rejection = Message<"goex.v1.Rejection"> & {
  sample: number;
  klass: string;
  reason: string;
};
export const RejectionSchema: GenMessage<Rejection>;

export type MapReply = Message<"goex.v1.MapReply"> & {
  candidates: Candidate[];
  agreement: number;
  samples: number;
  rejected: Rejection[];
  proposer: string;
  sure: boolean;
  notes: string[];
  explanation: string[];
  clarification?: Clarification;
};
export const MapReplySchema: GenMessage<MapReply>;

export type Clarification = Message<"goex.v1.Clarification"> & {
  text: string;
  options: ClarificationOption[];
  methods: string[];
};
export const ClarificationSchema: GenMessage<Clarification>;

export type ClarificationOption = Message<"goex.v1.ClarificationOption"> & {
  answer: string;
  methods: string[];
};
export const ClarificationOptionSchema: GenMessage<ClarificationOption>;

export type ExecuteRequest = Message<"goex.v1.ExecuteRequest"> & {
  database: string;
  folder: string;
  codeServices: string[];
  detach: boolean;
  askSeconds: number;
  choice: number;
  key: string;
  readsOnly: boolean;
  answer: string;
  account: string;
  what:
    | { case: "intent"; value: string }
    | { case: "calls"; value: Calls }
    | { case: "files"; value: FilesProgram }
    | { case: "proposal"; value: string }
    | { case: "sql"; value: SqlProgram }
    | { case: "mongo"; value: MongoProgram }
    | { case: "code"; value: CodeProgram }
    | { case: "task"; value: Task }
    | { case: undefined; value?: undefined };
};
export const ExecuteRequestSchema: GenMessage<ExecuteRequest>;

export type RevertRequest = Message<"goex.v1.RevertRequest"> & {
  actionId: string;
  verb: string;
  detach: boolean;
  askSeconds: number;
  also: string[];
  regardless: boolean;
  key: string;
};
export const RevertRequestSchema: GenMessage<RevertRequest>;

export type WayBackRequest = Message<"goex.v1.WayBackRequest"> & {
  verb: string;
  actionId: string;
  moment: string;
  everyone: boolean;
  agent: string;
  task: string;
};
export const WayBackRequestSchema: GenMessage<WayBackRequest>;

export type WayStep = Message<"goex.v1.WayStep"> & {
  action?: ActionView;
  can: boolean;
  why: string;
  what: string;
};
export const WayStepSchema: GenMessage<WayStep>;

export type WayBackReply = Message<"goex.v1.WayBackReply"> & {
  steps: WayStep[];
};
export const WayBackReplySchema: GenMessage<WayBackReply>;

export type ActionId = Message<"goex.v1.ActionId"> & {
  id: string;
};
export const ActionIdSchema: GenMessage<ActionId>;

export type Event = Message<"goex.v1.Event"> & {
  actionId: string;
  what:
    | { case: "state"; value: StateChange }
    | { case: "asking"; value: Approval }
    | { case: "output"; value: Output }
    | { case: "progress"; value: string }
    | { case: "mapped"; value: MapReply }
    | { case: "finished"; value: Finished }
    | { case: undefined; value?: undefined };
};
export const EventSchema: GenMessage<Event>;

export type StateChange = Message<"goex.v1.StateChange"> & {
  from: string;
  event: string;
  to: string;
};
export const StateChangeSchema: GenMessage<StateChange>;

export type Output = Message<"goex.v1.Output"> & {
  stream: string;
  data: Uint8Array;
};
export const OutputSchema: GenMessage<Output>;

export type Finished = Message<"goex.v1.Finished"> & {
  action?: ActionView;
  problem?: Problem;
  answer: string;
};
export const FinishedSchema: GenMessage<Finished>;

export type Problem = Message<"goex.v1.Problem"> & {
  code: string;
  message: string;
  nextStep: string;
  exitStatus: number;
  details: string[];
  retry: string;
  who: string;
};
export const ProblemSchema: GenMessage<Problem>;

export type Ending = Message<"goex.v1.Ending"> & {
  status: string;
  changed: string;
  undo: string;
  retry: string;
  who: string;
  next: string;
  summary: string;
  deadline: string;
  page: string;
};
export const EndingSchema: GenMessage<Ending>;

export type ActionView = Message<"goex.v1.ActionView"> & {
  id: string;
  agent: string;
  state: string;
  kind: string;
  requestJson: string;
  digest: string;
  undoClass: string;
  undoText: string;
  lines: string[];
  outcomeJson: string;
  created: string;
  updated: string;
  intent: string;
  target: string;
  canUndo: boolean;
  canRedo: boolean;
  risk: string;
  session: string;
  heldUntil: string;
  ending?: Ending;
};
export const ActionViewSchema: GenMessage<ActionView>;

export type ListRequest = Message<"goex.v1.ListRequest"> & {
  limit: number;
  before: string;
  brief: boolean;
};
export const ListRequestSchema: GenMessage<ListRequest>;

export type ListReply = Message<"goex.v1.ListReply"> & {
  actions: ActionView[];
};
export const ListReplySchema: GenMessage<ListReply>;

export type JudgeRequest = Message<"goex.v1.JudgeRequest"> & {
  tool: string;
  kind: string;
  folder: string;
  paths: string[];
  program: string;
  host: string;
  home: string;
};
export const JudgeRequestSchema: GenMessage<JudgeRequest>;

export type JudgeReply = Message<"goex.v1.JudgeReply"> & {
  verdict: string;
  reason: string;
  rules: string[];
};
export const JudgeReplySchema: GenMessage<JudgeReply>;

export type WhoamiRequest = Message<"goex.v1.WhoamiRequest"> & {
};
export const WhoamiRequestSchema: GenMessage<WhoamiRequest>;

export type WhoamiReply = Message<"goex.v1.WhoamiReply"> & {
  agent: string;
  session: string;
  uid: number;
  pid: number;
  socket: string;
  version: string;
};
export const WhoamiReplySchema: GenMessage<WhoamiReply>;

export type NeedView = Message<"goex.v1.NeedView"> & {
  service: string;
  account: string;
  scope: string;
  risk: string;
  description: string;
  also: string[];
  methods: string[];
  why: string;
  granted: boolean;
  heldBy: string;
  opens: string[];
  opensAll: boolean;
  heldBySeen: boolean;
  see: string[];
  change: string[];
  destroy: string[];
  share: string[];
};
export const NeedViewSchema: GenMessage<NeedView>;

export type WidthView = Message<"goex.v1.WidthView"> & {
  name: string;
  words: string[];
  until: string;
  warning: string;
};
export const WidthViewSchema: GenMessage<WidthView>;

export type Approval = Message<"goex.v1.Approval"> & {
  id: string;
  actionId: string;
  agent: string;
  digest: string;
  lines: string[];
  needs: NeedView[];
  undoClass: string;
  undoText: string;
  risk: string;
  presence: boolean;
  widths: string[];
  reason: string;
  created: string;
  deadline: string;
  intent: string;
  state: string;
  settledBy: string;
  arguments: string[];
  source: string;
  session: string;
  place: number;
  waiting: number;
  count: number;
  sameAs: string[];
  choices: WidthView[];
  kind: string;
  brief: boolean;
  presenceBy: string;
  task?: Task;
  question?: Question;
};
export const ApprovalSchema: GenMessage<Approval>;

export type Question = Message<"goex.v1.Question"> & {
  sentence: string;
  payload: string[];
  asks: string;
  worst: string;
  undo: string;
  fresh: string;
  notes: string[];
  irreversible: boolean;
  answers: Answer[];
  alone: boolean;
};
export const QuestionSchema: GenMessage<Question>;

export type Answer = Message<"goex.v1.Answer"> & {
  key: string;
  name: string;
  label: string;
};
export const AnswerSchema: GenMessage<Answer>;

export type PreviewRequest = Message<"goex.v1.PreviewRequest"> & {
  what:
    | { case: "request"; value: ExecuteRequest }
    | { case: "revert"; value: RevertRequest }
    | { case: "actionId"; value: string }
    | { case: undefined; value?: undefined };
};
export const PreviewRequestSchema: GenMessage<PreviewRequest>;

export type DryRunReply = Message<"goex.v1.DryRunReply"> & {
  ok: boolean;
  summary: string;
  lines: DryLine[];
  plan: string[];
  preview: string;
};
export const DryRunReplySchema: GenMessage<DryRunReply>;

export type DryLine = Message<"goex.v1.DryLine"> & {
  kind: string;
  text: string;
};
export const DryLineSchema: GenMessage<DryLine>;

export const Actions: GenService<{
  find: { methodKind: "unary"; input: typeof FindRequestSchema; output: typeof FindReplySchema };
  map: { methodKind: "unary"; input: typeof MapRequestSchema; output: typeof MapReplySchema };
  execute: { methodKind: "server_streaming"; input: typeof ExecuteRequestSchema; output: typeof EventSchema };
  revert: { methodKind: "server_streaming"; input: typeof RevertRequestSchema; output: typeof EventSchema };
  wayBack: { methodKind: "unary"; input: typeof WayBackRequestSchema; output: typeof WayBackReplySchema };
  watch: { methodKind: "server_streaming"; input: typeof ActionIdSchema; output: typeof EventSchema };
  get: { methodKind: "unary"; input: typeof ActionIdSchema; output: typeof ActionViewSchema };
  result: { methodKind: "unary"; input: typeof ResultRequestSchema; output: typeof ResultReplySchema };
  list: { methodKind: "unary"; input: typeof ListRequestSchema; output: typeof ListReplySchema };
  cancel: { methodKind: "unary"; input: typeof ActionIdSchema; output: typeof ActionViewSchema };
  whoami: { methodKind: "unary"; input: typeof WhoamiRequestSchema; output: typeof WhoamiReplySchema };
  judge: { methodKind: "unary"; input: typeof JudgeRequestSchema; output: typeof JudgeReplySchema };
  preview: { methodKind: "unary"; input: typeof PreviewRequestSchema; output: typeof DryRunReplySchema };
}>;
