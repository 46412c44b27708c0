"""Data stores and deleting requests (A4)."""

from __future__ import annotations

import functools

from agent.control.guard.rules.model import Rule

_rule = functools.partial(Rule, cls="A4", category="datastore")

RULES: tuple[Rule, ...] = (
    _rule(
        id="redis.flush",
        programs="redis-cli valkey-cli keydb-cli",
        operand=(
            "^(?:FLUSHALL|FLUSHDB|SHUTDOWN|DEBUG|SWAPDB|FAILOVER|RESET|MIGRATE|SLAVEOF|REPLICAOF|EVAL|EVALSHA|FCALL)$"
        ),
        text=(
            r"(?:^|\s)(?:FLUSHALL|FLUSHDB|SHUTDOWN|DEBUG|SWAPDB|FAILOVER|MIGRATE|SLAVEOF"
            r"|REPLICAOF|EVAL|EVALSHA)(?:\s|$)"
        ),
        at_least=1,
        reason="It empties or stops the store.",
        match=("redis-cli FLUSHALL", "redis-cli -h cache.internal -n 3 flushdb async"),
        spare=("redis-cli GET flushall:last", "redis-cli INFO memory", "redis-cli --version"),
    ),
    _rule(
        id="redis.config",
        programs="redis-cli valkey-cli",
        verbs=(
            "CONFIG SET",
            "config set",
            "CONFIG REWRITE",
            "config rewrite",
            "MODULE LOAD",
            "module load",
            "ACL SETUSER",
            "acl setuser",
            "ACL DELUSER",
            "acl deluser",
            "SCRIPT FLUSH",
            "script flush",
            "FUNCTION FLUSH",
            "CLUSTER *",
            "cluster reset",
        ),
        reason="It changes the store's settings.",
        match=("redis-cli CONFIG SET dir /root/.ssh",),
        spare=("redis-cli CONFIG GET dir",),
    ),
    _rule(
        id="redis.delete-many",
        programs="redis-cli valkey-cli",
        operand="^(?:DEL|UNLINK)$",
        text=r"(?:DEL|UNLINK)\s+(?:.*[\ue000-\ue00a]|\S+\s+\S+)",
        reason="It deletes many keys.",
        match=("redis-cli KEYS 'sess:*' | xargs redis-cli DEL",),
        spare=("redis-cli DEL one:key",),
    ),
    _rule(
        id="mongo.drop",
        programs="mongosh mongo",
        text=(
            r"\.(?:drop(?:Database|Index(?:es)?|User|Role|AllUsersFromDatabase)?|deleteMany"
            r"|deleteOne\s*\(\s*\{\s*\}|remove|renameCollection|shutdownServer"
            r"|updateMany\s*\(\s*\{\s*\}|bulkWrite|convertToCapped)\s*\(|shutdown\s*:\s*1"
        ),
        reason="It deletes data or stops the store.",
        match=(
            "mongosh shop --eval 'db.dropDatabase()'",
            "mongosh --eval 'db.orders.deleteMany({})'",
            'mongo shop --eval "db.users.drop()"',
        ),
        spare=("mongosh shop --eval 'db.orders.find({status:\"dropped\"}).limit(5)'",),
    ),
    _rule(
        id="mongorestore.drop",
        programs="mongorestore mongoimport",
        options="--drop",
        text="--drop",
        reason="It drops what is there first.",
        match=("mongorestore --drop dump/",),
        spare=("mongodump --out d",),
    ),
    _rule(
        id="http.delete",
        programs="curl http https xh wget httpie",
        text=r"(?:^|\s)(?:-X\s*|--request[= ]|--method[= ])?DELETE(?:\s|$)",
        reason="It asks a server to delete something.",
        match=(
            "curl -X DELETE http://localhost:9200/logs-2024",
            "curl -XDELETE https://api.example.com/v1/projects/7",
        ),
        spare=("curl -s localhost:9200/_cat/indices?v", "curl -d 'DELETE-ME' http://localhost:3000/x"),
    ),
    _rule(
        id="http.delete-by-query",
        programs="curl http https xh wget httpie",
        text=(
            r"_delete_by_query|_update_by_query|\"?query\"?\s*:\s*\"?\s*mutation\b[^}]{0"
            r",200}\b(?:delete|remove|destroy|drop)|mutation\s*\{?\s*\w*\s*\{?\s*(?:delete|remove"
            r"|destroy|drop)\w*|[?&]action=delete|/_(?:close|forcemerge|shutdown)\b"
            "|/admin/(?:shutdown|delete)|/actuator/shutdown"
        ),
        reason="It asks a server to delete something.",
        match=("curl -XPOST 'localhost:9200/orders/_delete_by_query' -d '{\"query\":{\"match_all\":{}}}'",),
        spare=("curl -s localhost:9200/orders/_search",),
    ),
    _rule(
        id="kafka.delete",
        programs=(
            "kafka-topics.sh kafka-topics kafka-consumer-groups.sh kafka-consumer-groups"
            " kafka-delete-records.sh kafka-delete-records kafka-configs.sh kafka-configs"
            " kafka-acls.sh rpk kcat"
        ),
        without="--dry-run",
        text=r"--(?:delete|alter|reset-offsets|offset-json-file)\b|\btopic (?:delete|trim|alter)|\bgroup delete",
        reason="It deletes or changes topics.",
        match=("kafka-topics.sh --bootstrap-server b:9092 --delete --topic orders",),
        spare=("kafka-topics.sh --bootstrap-server b:9092 --list",),
    ),
    _rule(
        id="rabbit.purge",
        programs="rabbitmqadmin rabbitmqctl rabbitmq-plugins nsqadmin nats pulsar-admin",
        text=r"(?:^|\s)(?:purge\S*|delete\S*|stop_app|reset|force_reset|clear_\S+|rm|del|remove)(?:\s|$)",
        reason="It deletes messages or queues.",
        match=("rabbitmqadmin purge queue name=jobs",),
        spare=("rabbitmqadmin list queues",),
    ),
    _rule(
        id="etcd.delete",
        programs="etcdctl consul zkcli.sh zkcli nomad",
        text=(
            r"(?:^|\s)(?:del|rm|delete|deleteall|rmr|defrag|compact(?:ion)?|kv delete|member"
            " remove|lease revoke|user delete|role delete|snapshot restore|force-leave|leave|job"
            r" stop|system gc|alloc stop|node drain)(?:\s|$)"
        ),
        reason="It deletes keys or stops jobs.",
        match=("etcdctl del / --prefix", "consul kv delete -recurse x"),
        spare=("etcdctl get /config --prefix",),
    ),
    _rule(
        id="influx.delete",
        programs="influx influxd clickhouse-client cqlsh cypher-shell neo4j-admin couchbase-cli arangosh dgraph",
        text=(
            r"(?:^|\s)(?:(?:bucket|org|user|task|auth)\s+delete|delete|restore|bucket-delete"
            r"|bucket-flush|load --overwrite)(?:\s|$)|\b(?:DROP|TRUNCATE|DETACH DELETE"
            r"|ALTER\s+TABLE\s+\w+\s+DELETE)\b"
        ),
        reason="It deletes data.",
        match=("influx bucket delete -n metrics", "cqlsh -e 'TRUNCATE ks.t'"),
        spare=("influx bucket list",),
    ),
    _rule(
        id="memcached.flush",
        programs="memcflush memcrm",
        reason="It empties the cache.",
        match=("memcflush --servers=x",),
        spare=("memcstat",),
    ),
    _rule(
        id="search.delete",
        programs="elasticdump curator es solr meilisearch typesense algolia",
        text=(
            r"(?:^|\s)(?:delete\S*|close|snapshot delete|unload|indices delete|clear)(?:\s|$)"
            "|--type=delete|--action delete"
        ),
        reason="It deletes indexes.",
        match=("solr delete -c x",),
        spare=("solr status",),
    ),
)
