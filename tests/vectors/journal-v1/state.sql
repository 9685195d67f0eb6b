BEGIN TRANSACTION;
CREATE TABLE actions (
	id VARCHAR(40) NOT NULL, 
	number INTEGER NOT NULL, 
	agent VARCHAR(80) NOT NULL, 
	session VARCHAR(80) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	created VARCHAR(32) NOT NULL, 
	updated VARCHAR(32) NOT NULL, 
	intent TEXT NOT NULL, 
	request TEXT NOT NULL, 
	"plan" TEXT NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	outcome TEXT NOT NULL, 
	problem TEXT NOT NULL, 
	target VARCHAR(40) NOT NULL, 
	source TEXT NOT NULL, 
	detached BOOLEAN NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "actions" VALUES('a-000000000001',2,'scout','term-1','calls','done','2026-10-01T09:00:02.000000Z','2026-10-01T09:00:16.000000Z','send Grüße to #ops','{"calls":[{"account":"work","arguments":{"channel":"#ops","text":"Grüße ‮"},"method":"chat.postMessage","service":"slack"}],"kind":"calls"}','{"action":{"calls":[{"account":"work","arguments":{"channel":"#ops","text":"Grüße ‮"},"method":"chat.postMessage","service":"slack"}],"kind":"calls"},"bounds":{"n":1},"catalog_hash":"c","image_id":"i","limits":{},"lines":["slack.chat.postMessage"],"needs":[{"account":"work","arguments":[{"channel":"#ops","text":"Grüße ‮"}],"methods":["chat.postMessage"],"risk":2,"scope":"chat:write","service":"slack","why":"action"},{"account":"work","arguments":[],"methods":["x"],"risk":4,"scope":"rooms","service":"matrix","why":"undo"}],"resolved":{},"undo":{},"undo_class":"compensating","undo_text":"takes it back"}','badbebcf9d299c5052ed43a3186df51da2be0eabc18acc3bfbbe41749c70d483','{"changes":[],"changes_cut":0,"cut":0,"ended":"exited","exit_code":null,"ok":true,"results":[],"stderr":"","stdout":"","summary":"Sent.","touched":true}','','','user 1000, process 7 (x), on the agent socket',0);
INSERT INTO "actions" VALUES('a-000000000002',14,'scout','term-1','calls','done','2026-10-01T09:00:17.000000Z','2026-10-01T09:00:28.000000Z','','{"calls":[{"account":"work","arguments":{"channel":"#ops","text":"Grüße ‮"},"method":"chat.postMessage","service":"slack"}],"kind":"calls"}','{"action":{"calls":[{"account":"work","arguments":{"channel":"#ops","text":"Grüße ‮"},"method":"chat.postMessage","service":"slack"}],"kind":"calls"},"bounds":{"n":1},"catalog_hash":"c","image_id":"i","limits":{},"lines":["slack.chat.postMessage"],"needs":[{"account":"work","arguments":[{"channel":"#ops","text":"Grüße ‮"}],"methods":["chat.postMessage"],"risk":2,"scope":"chat:write","service":"slack","why":"action"},{"account":"work","arguments":[],"methods":["x"],"risk":4,"scope":"rooms","service":"matrix","why":"undo"}],"resolved":{},"undo":{},"undo_class":"compensating","undo_text":"takes it back"}','badbebcf9d299c5052ed43a3186df51da2be0eabc18acc3bfbbe41749c70d483','{"changes":[],"changes_cut":0,"cut":0,"ended":"exited","exit_code":null,"ok":true,"results":[],"stderr":"","stdout":"","summary":"Sent.","touched":true}','','','user 1000, process 7 (x), on the agent socket',0);
INSERT INTO "actions" VALUES('a-000000000003',24,'scout','term-1','calls','done','2026-10-01T09:00:29.000000Z','2026-10-01T09:00:36.000000Z','','{"calls":[{"account":"work","arguments":{"channel":"#ops","text":"Grüße ‮"},"method":"chat.postMessage","service":"slack"}],"kind":"calls"}','{"action":{"calls":[{"account":"work","arguments":{"channel":"#ops","text":"Grüße ‮"},"method":"chat.postMessage","service":"slack"}],"kind":"calls"},"bounds":{"n":1},"catalog_hash":"c","image_id":"i","limits":{},"lines":["slack.chat.postMessage"],"needs":[{"account":"work","arguments":[{"channel":"#ops","text":"Grüße ‮"}],"methods":["chat.postMessage"],"risk":2,"scope":"chat:write","service":"slack","why":"action"},{"account":"work","arguments":[],"methods":["x"],"risk":4,"scope":"rooms","service":"matrix","why":"undo"}],"resolved":{},"undo":{},"undo_class":"compensating","undo_text":"takes it back"}','badbebcf9d299c5052ed43a3186df51da2be0eabc18acc3bfbbe41749c70d483','{"changes":[],"changes_cut":0,"cut":0,"ended":"exited","exit_code":null,"ok":true,"results":[],"stderr":"","stdout":"","summary":"Sent.","touched":true}','','','user 1000, process 7 (x), on the agent socket',0);
INSERT INTO "actions" VALUES('a-000000000004',32,'other','conn-2','files','failed','2026-10-01T09:00:37.000000Z','2026-10-01T09:00:38.000000Z','','{"folder":"/srv/x","kind":"files","language":"shell","program":"rm -r *"}','','','','{"code":"invalid","details":[],"exit_status":2,"message":"There is no such folder.","next_step":""}','','user 1001',1);
CREATE TABLE agents (
	name VARCHAR(80) NOT NULL, 
	token_hash BLOB NOT NULL, 
	created VARCHAR(32) NOT NULL, 
	mac BLOB NOT NULL, 
	PRIMARY KEY (name), 
	UNIQUE (token_hash)
);
CREATE TABLE approvals (
	id VARCHAR(40) NOT NULL, 
	action_id VARCHAR(40) NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	created VARCHAR(32) NOT NULL, 
	deadline VARCHAR(32) NOT NULL, 
	reason TEXT NOT NULL, 
	widths TEXT NOT NULL, 
	presence BOOLEAN NOT NULL, 
	settled VARCHAR(32) NOT NULL, 
	settled_by TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE grants (
	id VARCHAR(40) NOT NULL, 
	agent VARCHAR(80) NOT NULL, 
	service VARCHAR(80) NOT NULL, 
	account TEXT NOT NULL, 
	scope TEXT NOT NULL, 
	width VARCHAR(16) NOT NULL, 
	constraints TEXT NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	session VARCHAR(80) NOT NULL, 
	created VARCHAR(32) NOT NULL, 
	expires VARCHAR(32) NOT NULL, 
	"by" TEXT NOT NULL, 
	why VARCHAR(40) NOT NULL, 
	revoked VARCHAR(32) NOT NULL, 
	used VARCHAR(32) NOT NULL, 
	mac BLOB NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "grants" VALUES('g-000000000001','scout','slack','work','chat:write','once','{}','badbebcf9d299c5052ed43a3186df51da2be0eabc18acc3bfbbe41749c70d483','','2026-10-01T09:00:07.000000Z','2027-10-01T09:00:08.000000Z','user 1000, process 9 (goex), on the user socket','a-000000000001','','2026-10-01T09:00:11.000000Z',X'35068C57F0F2B676ED5D52997A2EBAC5C72D98A94D9E2D18A656EDC0B0124238');
INSERT INTO "grants" VALUES('g-000000000002','scout','slack','work','chat:write','permanent','{}','','','2026-10-01T09:00:20.000000Z','2027-10-01T09:00:21.000000Z','user 1000, process 9 (goex), on the user socket','a-000000000002','','',X'10CE3BD958CDEFAF040EE183AC8F36566D02FC3BE756F5E63DA9C7F6A7C17986');
CREATE TABLE journal (
	number INTEGER NOT NULL, 
	at VARCHAR(32) NOT NULL, 
	action_id VARCHAR(40) NOT NULL, 
	agent VARCHAR(80) NOT NULL, 
	kind VARCHAR(40) NOT NULL, 
	from_state VARCHAR(16) NOT NULL, 
	to_state VARCHAR(16) NOT NULL, 
	facts TEXT NOT NULL, 
	hash BLOB NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "journal" VALUES(1,'2026-10-01T09:00:01.000000Z','','','daemon-start','','','{"generation":1,"pid":1,"version":"0.1.0"}',X'7689289FF7E717B53AE28D961FE5AB21148E79A381756229830C7178D8A05E18');
INSERT INTO "journal" VALUES(2,'2026-10-01T09:00:02.000000Z','a-000000000001','scout','receive','','received','{"intent":"send Grüße to #ops","request_sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","session":"term-1","source":"user 1000, process 7 (x), on the agent socket"}',X'8375304EE2530D92F0D50220431E3441AEC6874DB4A5ECE887B7A6827848924F');
INSERT INTO "journal" VALUES(3,'2026-10-01T09:00:03.000000Z','a-000000000001','scout','votes','','','{"agreement":1.0,"candidates":[{"calls":["slack.chat.postMessage"],"scopes":["slack:chat:write"],"sha256":"0000000000000000000000000000000000000000000000000000000000000000","votes":1}],"proposer":"embedded","rejected":[],"samples":1,"sure":true}',X'CFCB065DCB16135CBF7870EBFAB33D9DDA549521462769BDC30A9DD458ADC86B');
INSERT INTO "journal" VALUES(4,'2026-10-01T09:00:04.000000Z','a-000000000001','scout','map','received','mapped','{"request_sha256":"6cb972eb19a839c11561001dd29347c770f0985b892c2c66256db6cbf3635018"}',X'F1D650130581EF9823D5C738F871667F1C67BC620BF433F50D59FD5C29DA1ADD');
INSERT INTO "journal" VALUES(5,'2026-10-01T09:00:05.000000Z','a-000000000001','scout','assess','mapped','assessed','{"digest":"badbebcf9d299c5052ed43a3186df51da2be0eabc18acc3bfbbe41749c70d483"}',X'422C8B2CCD48A2FCFE1CD51ADE84CD6A9B4E4606F4A4CA2695984C2BA5C22D8E');
INSERT INTO "journal" VALUES(6,'2026-10-01T09:00:06.000000Z','a-000000000001','scout','ask','assessed','asking','{"question":"q-1"}',X'B7E50449E34898C6EBD2823E9109E432A03D000B124467468C50FE86DC4A604C');
INSERT INTO "journal" VALUES(7,'2026-10-01T09:00:09.000000Z','a-000000000001','scout','grant','','','{"by":"user 1000, process 9 (goex), on the user socket","grants":[{"account":"work","constraints":"{}","expires":"2027-10-01T09:00:08.000000Z","id":"g-000000000001","scope":"chat:write","service":"slack","width":"once"}],"ledger":"5ae08b8587be6acde870e2b14821dd31efbbe08ef8baa4ffa8d8b3f104d118b9"}',X'4E9AB319C5D3E8B7B6AE4A4A623BF9121F60283CA5CE8FBDE9FE0D3E9B5077E0');
INSERT INTO "journal" VALUES(8,'2026-10-01T09:00:10.000000Z','a-000000000001','scout','allow','asking','allowed','{"grants":["g-000000000001"],"ledger":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}',X'97940E7EA5F874A55DC123B07736CBC672F7E5333BF4B9B23AE73292154D0253');
INSERT INTO "journal" VALUES(9,'2026-10-01T09:00:12.000000Z','a-000000000001','scout','prepare','allowed','prepared','{}',X'35C0B26AF00814F25943B97A9085C9E298DD3231B0E998A5A25E9004188AA388');
INSERT INTO "journal" VALUES(10,'2026-10-01T09:00:13.000000Z','a-000000000001','scout','run','prepared','running','{}',X'14641CBDD9624372332826E6E543359845259C9C0953F2BF7E6917F95D5F1D2B');
INSERT INTO "journal" VALUES(11,'2026-10-01T09:00:14.000000Z','a-000000000001','scout','request','','','{"method":"POST","request":"call-0","url":"https://slack.com/api/chat.postMessage"}',X'98D46076FBFD7771292AA27E0648312149984F4DD805E0406D16CFC392E07D67');
INSERT INTO "journal" VALUES(12,'2026-10-01T09:00:15.000000Z','a-000000000001','scout','answer','','','{"request":"call-0","sha256":"1111111111111111111111111111111111111111111111111111111111111111","status":200,"well":true}',X'C04AE0A22C20541EDA99F618D5AC1DBF93C77A3E74FFAB807891B30B8264FBA3');
INSERT INTO "journal" VALUES(13,'2026-10-01T09:00:16.000000Z','a-000000000001','scout','finish','running','done','{"ok":true,"outcome_sha256":"010eb64d6de8a30e338e8a2a4ce8cda73045986a9dc2bc786b3a75d8ee94a094","summary":"Sent."}',X'39E8D6889068E358E67644C68E38E1C35D60877A499C2FA0853596A2DF689ED8');
INSERT INTO "journal" VALUES(14,'2026-10-01T09:00:17.000000Z','a-000000000002','scout','receive','','received','{"intent":"","request_sha256":"6cb972eb19a839c11561001dd29347c770f0985b892c2c66256db6cbf3635018","session":"term-1","source":"user 1000, process 7 (x), on the agent socket"}',X'E0FA01AE7C351A501EC414A4F9EAAA8E9D46FAE6E4DD5057F633E07BC8AEBC7E');
INSERT INTO "journal" VALUES(15,'2026-10-01T09:00:18.000000Z','a-000000000002','scout','assess','received','assessed','{"digest":"badbebcf9d299c5052ed43a3186df51da2be0eabc18acc3bfbbe41749c70d483"}',X'964ECE37F98B7FDB68BCD5F28F105C67FEBA79443B468E10A233E6A84C1BF7AD');
INSERT INTO "journal" VALUES(16,'2026-10-01T09:00:19.000000Z','a-000000000002','scout','ask','assessed','asking','{"question":"q-1"}',X'1F8EAF7914B863F238DFEC47016F09DD423035858CA108147767EE6858120D0C');
INSERT INTO "journal" VALUES(17,'2026-10-01T09:00:22.000000Z','a-000000000002','scout','grant','','','{"by":"user 1000, process 9 (goex), on the user socket","grants":[{"account":"work","constraints":"{}","expires":"2027-10-01T09:00:21.000000Z","id":"g-000000000002","scope":"chat:write","service":"slack","width":"permanent"}],"ledger":"9b94dc9043b841390807a72661da24d1f7c5989f4616710b65dbbd3cc85454bc"}',X'9C4DD93FA38063159D6F9F5C4BEBC7FBD60A27D55A2A90CB348B66E0103443AA');
INSERT INTO "journal" VALUES(18,'2026-10-01T09:00:23.000000Z','a-000000000002','scout','allow','asking','allowed','{"grants":["g-000000000002"],"ledger":"9b94dc9043b841390807a72661da24d1f7c5989f4616710b65dbbd3cc85454bc"}',X'BDCD9A3A347F6BD7BC78C693D8EB5DB77C63037461D06B5A13CC6B045E8519B5');
INSERT INTO "journal" VALUES(19,'2026-10-01T09:00:24.000000Z','a-000000000002','scout','prepare','allowed','prepared','{}',X'B9F04C5363E02147FEA629C28A982974B95D749559D0380D96648D89CE7B2C00');
INSERT INTO "journal" VALUES(20,'2026-10-01T09:00:25.000000Z','a-000000000002','scout','run','prepared','running','{}',X'35FFB101C8A2BB1ED8694469DBF96916D0BBFF720516B1ED3EDD6739B4A9D72F');
INSERT INTO "journal" VALUES(21,'2026-10-01T09:00:26.000000Z','a-000000000002','scout','request','','','{"method":"POST","request":"call-0","url":"https://slack.com/api/chat.postMessage"}',X'0E96B4EA0586EA5A01738A3A4D03873D41313AFBD3CA0874383BC70A869E70AD');
INSERT INTO "journal" VALUES(22,'2026-10-01T09:00:27.000000Z','a-000000000002','scout','answer','','','{"request":"call-0","sha256":"1111111111111111111111111111111111111111111111111111111111111111","status":200,"well":true}',X'3F6FB2EC822B075519C374E625BA32BA74DF771B40CFF816CB054F0E92A1C1C1');
INSERT INTO "journal" VALUES(23,'2026-10-01T09:00:28.000000Z','a-000000000002','scout','finish','running','done','{"ok":true,"outcome_sha256":"010eb64d6de8a30e338e8a2a4ce8cda73045986a9dc2bc786b3a75d8ee94a094","summary":"Sent."}',X'3FAEFD0BBA67486FAA5DD03BF6A520AADF3635500C1AD525ED4ABDC637045BE5');
INSERT INTO "journal" VALUES(24,'2026-10-01T09:00:29.000000Z','a-000000000003','scout','receive','','received','{"intent":"","request_sha256":"6cb972eb19a839c11561001dd29347c770f0985b892c2c66256db6cbf3635018","session":"term-1","source":"user 1000, process 7 (x), on the agent socket"}',X'5F657CF29EE0A67FDBFD63CDF6DE9EA64B8B12CEDDA499503029BDF1C766AE09');
INSERT INTO "journal" VALUES(25,'2026-10-01T09:00:30.000000Z','a-000000000003','scout','assess','received','assessed','{"digest":"badbebcf9d299c5052ed43a3186df51da2be0eabc18acc3bfbbe41749c70d483"}',X'33E81DBCFA9F8E16A7DA1B97AAA7E6DD2A811772CDCD38FD681F17BD7D7A7D11');
INSERT INTO "journal" VALUES(26,'2026-10-01T09:00:31.000000Z','a-000000000003','scout','allow','assessed','allowed','{"grants":["g-000000000002"],"ledger":"9b94dc9043b841390807a72661da24d1f7c5989f4616710b65dbbd3cc85454bc"}',X'504870048B1A73826ED19855FA995A711D9748409C80E47C9195DA7D8FF10539');
INSERT INTO "journal" VALUES(27,'2026-10-01T09:00:32.000000Z','a-000000000003','scout','prepare','allowed','prepared','{}',X'7BDAA7C8E90CB0821051AC37B09980EE56401C2DC50DC5A554485E7BD891D575');
INSERT INTO "journal" VALUES(28,'2026-10-01T09:00:33.000000Z','a-000000000003','scout','run','prepared','running','{}',X'08B4B462AFE1173281729995B392BB3221F6B9D535599E11C57A1E4037D0D0E4');
INSERT INTO "journal" VALUES(29,'2026-10-01T09:00:34.000000Z','a-000000000003','scout','request','','','{"method":"POST","request":"call-0","url":"https://slack.com/api/chat.postMessage"}',X'D885E6E28EB7BA19AF743F91326398578849D0AA9D5D7DE92ACF2B0D40940E7C');
INSERT INTO "journal" VALUES(30,'2026-10-01T09:00:35.000000Z','a-000000000003','scout','answer','','','{"request":"call-0","sha256":"1111111111111111111111111111111111111111111111111111111111111111","status":200,"well":true}',X'360AE8FDB33F5D2F161459D5D3062CD7BFB5598A871EA1417DCC1482AD858265');
INSERT INTO "journal" VALUES(31,'2026-10-01T09:00:36.000000Z','a-000000000003','scout','finish','running','done','{"ok":true,"outcome_sha256":"010eb64d6de8a30e338e8a2a4ce8cda73045986a9dc2bc786b3a75d8ee94a094","summary":"Sent."}',X'1A4B0A13AF74431429A38EA8FCC5D38FE046F4382B872D3DE515A307A5B7750B');
INSERT INTO "journal" VALUES(32,'2026-10-01T09:00:37.000000Z','a-000000000004','other','receive','','received','{"intent":"","request_sha256":"ec1c995fd755be489e7b6ce609f6a8a16fb0eda8c59d37febb0901b66c79335d","session":"conn-2","source":"user 1001"}',X'C849CBD6EF52D00B8D9572297346879917AEC5A4786C947785E68F4BB2A3E72A');
INSERT INTO "journal" VALUES(33,'2026-10-01T09:00:38.000000Z','a-000000000004','other','reject','received','failed','{"problem":{"code":"invalid","details":[],"exit_status":2,"message":"There is no such folder.","next_step":""}}',X'B9431C01D9B20A8FC0C4B8DC22C30229DDA2488B3C9A62CF54E82C9D208C00EA');
CREATE TABLE records (
	action_id VARCHAR(40) NOT NULL, 
	name VARCHAR(80) NOT NULL, 
	sealed BLOB NOT NULL, 
	PRIMARY KEY (action_id, name)
);
CREATE TABLE schema_version (
	version INTEGER NOT NULL
);
INSERT INTO "schema_version" VALUES(1);
CREATE INDEX ix_journal_action_id ON journal (action_id);
CREATE INDEX ix_actions_state ON actions (state);
CREATE INDEX ix_actions_target ON actions (target);
CREATE INDEX ix_actions_number ON actions (number);
CREATE INDEX ix_approvals_action_id ON approvals (action_id);
CREATE INDEX ix_approvals_state ON approvals (state);
CREATE INDEX grants_lookup ON grants (agent, service, account, scope);
CREATE INDEX grants_digest ON grants (digest);
COMMIT;
