-- A part of a text that was split: the same in the platform's own format, since a part cannot always be read as markdown.
ALTER TABLE outbox ADD COLUMN formatted TEXT NOT NULL DEFAULT '';
