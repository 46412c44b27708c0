"""Tools that drop or reset databases (A3); SQL text is read by :mod:`agent.control.guard.sql`."""

from __future__ import annotations

import functools

from agent.control.guard.rules.model import Rule

_rule = functools.partial(Rule, cls="A3", category="sql")

RULES: tuple[Rule, ...] = (
    _rule(
        id="sql.drop-tool",
        programs="dropdb dropuser droplang pg_dropcluster pg_resetwal",
        reason="It drops a database or a role.",
        match=("dropdb shop_staging", "sudo -u postgres dropuser reporting"),
        spare=("dropdb --help", "createdb shop_test"),
    ),
    _rule(
        id="sql.mysqladmin",
        programs="mysqladmin mariadb-admin",
        text=r"(?:^|\s)(?:drop|shutdown|flush-\S+|kill|password|reload|refresh|stop-\S+|create-user)(?:\s|$)",
        reason="It drops a database or changes the server.",
        match=("mysqladmin -f drop shop",),
        spare=("mysqladmin status",),
    ),
    _rule(
        id="sql.restore-clean",
        programs="pg_restore",
        options="-c --clean --create -C",
        reason="It drops objects first.",
        match=("pg_restore --clean --if-exists -d shop dump.tar",),
        spare=("pg_restore -l dump.tar",),
    ),
    _rule(
        id="sql.roles",
        programs="createuser",
        options="-s --superuser -r --createrole",
        reason="It makes a role that may do everything.",
        match=("createuser -s x",),
        spare=("createuser --help",),
    ),
    _rule(
        id="sql.django",
        programs="manage.py django-admin python python3",
        operand=r"(?:^|/)manage\.py$|^(?:flush|reset_db)$",
        without="--plan --check -h",
        text=(
            r"(?:^|/|\s)(?:manage\.py\s+|django-admin\s+)?(?:flush|sqlflush-run|reset_db"
            "|reset_schema|clean_duplicate_history|delete_stale_contenttypes|clearsessions-all"
            r"|migrate\s+(?:\S+\s+)?zero)(?:\s|$)"
        ),
        reason="It empties or drops tables.",
        match=("python manage.py flush --no-input", "python manage.py migrate app zero"),
        spare=("python manage.py migrate --plan", "python manage.py runserver"),
    ),
    _rule(
        id="sql.rails",
        programs="rails rake",
        text=(
            r"(?:^|\s)db:(?:drop\S*|reset\S*|purge\S*|truncate_all|schema:load|structure:load"
            r"|rollback|migrate:(?:reset|down|redo)|setup|seed:replant)(?:\s|$)"
        ),
        reason="It drops or resets the database.",
        match=("bundle exec rails db:drop", "rake db:reset"),
        spare=("rake db:seed", "rails db:migrate"),
    ),
    _rule(
        id="sql.prisma",
        programs=(
            "prisma sequelize sequelize-cli knex typeorm mikro-orm drizzle-kit artisan alembic"
            " flyway liquibase mix doctrine wp drush supabase migrate goose dbmate atlas ecto"
            " sqlx diesel hasura"
        ),
        without="--dry-run --sql --help",
        text=(
            r"(?:^|\s)(?:migrate\s+reset|db\s+(?:push\s+--(?:force-reset|accept-data-loss)|reset"
            "|drop|clean)|db:drop|db:wipe|migrate:(?:fresh|reset|refresh|rollback|undo(?::all)?)"
            r"|migrate:rollback|schema:drop|drop|downgrade|clean|drop-?all|undo|ecto\.(?:drop"
            r"|reset|rollback)|rollback\S*|sql-drop|database\s+(?:drop|reset)|site empty"
            r"|down(?:-to)?|reset|dropDatabase|seed:undo\S*|revert|migration:revert|schema clean"
            r")(?:\s|$)"
        ),
        reason="It drops or resets the database.",
        match=("npx prisma migrate reset --force", "alembic downgrade base"),
        spare=("alembic upgrade head", "npx prisma migrate deploy"),
    ),
    _rule(
        id="sql.artisan",
        programs="php",
        text=(
            r"(?:^|/|\s)(?:artisan\s+(?:db:wipe|migrate:(?:fresh|reset|refresh|rollback))|(?:bin/"
            r")?console\s+doctrine:(?:database:drop|schema:drop|fixtures:load))"
        ),
        reason="It drops or resets the database.",
        match=("php artisan migrate:fresh",),
        spare=("php artisan migrate:status",),
    ),
)
