# The daemon, its HTTP API and its page. See docs/deployment.md.
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
RUN python3 -m venv /opt/uv && /opt/uv/bin/pip install --no-cache-dir --quiet uv==0.13.9
ENV UV_PROJECT_ENVIRONMENT=/opt/ostiary/.venv \
    UV_PYTHON_DOWNLOADS=never \
    UV_LINK_MODE=copy \
    UV_COMPILE_BYTECODE=1 \
    UV_NO_CACHE=1 \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
WORKDIR /opt/ostiary
COPY pyproject.toml uv.lock README.md LICENSE ./
RUN /opt/uv/bin/uv sync --frozen --no-default-groups --no-install-project
COPY adapters adapters
COPY agent agent
COPY gateway gateway
RUN /opt/uv/bin/uv sync --frozen --no-default-groups --no-editable

FROM ${BASE}
# tini: a killed sandbox leaves a process to whoever is number 1, which must collect it
RUN if ! command -v tini >/dev/null; then \
      apt-get update -qq && apt-get install -y -qq --no-install-recommends tini && rm -rf /var/lib/apt/lists/*; \
    fi \
 && groupadd --system --gid 10001 ostiary \
 && useradd --system --uid 10001 --gid 10001 --home-dir /var/lib/ostiary --shell /usr/sbin/nologin ostiary \
 && install --directory --owner ostiary --group ostiary --mode 0700 /var/lib/ostiary
COPY --from=build /opt/ostiary/.venv /opt/ostiary/.venv
ENV PATH=/opt/ostiary/.venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    OSTIARY_HOME=/var/lib/ostiary \
    OSTIARY_ADAPTERS__HTTP__HOST=0.0.0.0
USER ostiary
WORKDIR /var/lib/ostiary
VOLUME /var/lib/ostiary
EXPOSE 8642
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["python3", "-c", \
  "import os, pathlib; from gateway.cli import control; control.request(pathlib.Path(os.environ['OSTIARY_HOME'], 'control.sock'), 'GET', '/healthz', timeout_s=4)"]
ENTRYPOINT ["tini", "--", "ostiary"]
CMD ["run"]
