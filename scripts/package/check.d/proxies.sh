# The examples of nginx and Caddy, each before a service that runs.

site=https://lakemill.example.org

step_proxies() {
    inside sed -i -e "s|^#SVC_PUBLIC_URL=.*|SVC_PUBLIC_URL=$site|" -e 's|^#SVC_TRUSTED_PROXIES=|SVC_TRUSTED_PROXIES=|' /etc/lakemill/up.env
    inside systemctl restart lakemill-up
    check "up answers behind a proxy" await 60 answers http://127.0.0.1:3000/readyz
    inside mkdir -p /etc/ssl/lakemill
    inside openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=lakemill.example.org \
        -addext subjectAltName=DNS:lakemill.example.org -keyout /etc/ssl/lakemill/privkey.pem \
        -out /etc/ssl/lakemill/fullchain.pem 2>/dev/null
    head -c 104857600 /dev/zero | tr '\0' 'x' >"$root/srv/check/100MiB"
    (cat "$root/srv/check/100MiB" && echo) >"$root/srv/check/more"

    inside cp /dev/stdin /etc/nginx/conf.d/lakemill.conf <docs/operations/nginx.conf
    check "nginx takes its example" inside nginx -t
    check "nginx starts" inside systemctl start nginx
    through nginx /etc/ssl/lakemill/fullchain.pem 127.0.0.2
    behind_a_login
    inside systemctl stop nginx

    { printf '{\n\tlocal_certs\n\tskip_install_trust\n}\n' && cat docs/operations/Caddyfile; } | inside cp /dev/stdin /etc/caddy/Caddyfile
    inside cp /dev/stdin /srv/check/Caddyfile <docs/operations/Caddyfile
    check "Caddy takes its example" inside caddy validate --adapter caddyfile --config /srv/check/Caddyfile
    check "Caddy starts" starts caddy
    check "Caddy has its certificate" await 30 inside test -s /var/lib/caddy/.local/share/caddy/pki/authorities/local/root.crt
    through Caddy /var/lib/caddy/.local/share/caddy/pki/authorities/local/root.crt 127.0.0.3
    inside systemctl stop caddy
    inside sed -i -e "s|^SVC_PUBLIC_URL=.*|#SVC_PUBLIC_URL=$site|" -e 's|^SVC_TRUSTED_PROXIES=|#SVC_TRUSTED_PROXIES=|' /etc/lakemill/up.env
    inside systemctl restart lakemill-up
    check "up answers without a proxy again" await 60 answers http://127.0.0.1:3000/readyz
}

# The example with a login: another nginx server stands for oauth2-proxy, and knows one cookie.
behind_a_login() {
    inside cp /dev/stdin /etc/nginx/conf.d/lakemill.conf <docs/operations/nginx-login.conf
    inside cp /dev/stdin /etc/nginx/conf.d/oauth2-proxy.conf <<'CONF'
server {
    listen 127.0.0.1:4180;
    location = /oauth2/auth {
        if ($cookie__oauth2_proxy = good) { return 202; }
        return 401;
    }
    location = /oauth2/sign_in { return 200 "log in, then back to $http_x_auth_request_redirect"; }
}
CONF
    local ask=(curl -sS --cacert /etc/ssl/lakemill/fullchain.pem) status=(-o /dev/null -w '%{http_code}')
    check "nginx takes its example with a login" inside nginx -t
    check "nginx starts with it" inside systemctl reload-or-restart nginx
    check "a page leads to the login, and back" await 10 says 'log in, then back to /p/flights?a=1&b=2' \
        "${ask[@]}" "$site/p/flights?a=1&b=2"
    check "what pages ask for is 401" says '^401$' "${ask[@]}" "${status[@]}" $site/api/pipelines
    check "and so is the session" says '^401$' "${ask[@]}" "${status[@]}" $site/session
    check "a balancer is let through" says '^200$' "${ask[@]}" "${status[@]}" $site/readyz
    check "metrics are not told" says '^404$' "${ask[@]}" "${status[@]}" $site/metrics
    check "who logged in reaches the service" says '"authenticated": *false' "${ask[@]}" -b _oauth2_proxy=good $site/session
    check "whose own login is asked for still" says unauthorized "${ask[@]}" -b _oauth2_proxy=good $site/api/pipelines
    inside rm /etc/nginx/conf.d/oauth2-proxy.conf
}

# through NAME CERTIFICATE ADDRESS: ADDRESS is of a client that guesses passwords.
through() {
    local base_url=$site job
    check "$1: its certificate is to be had" inside cp "$2" /srv/check/ca.pem
    printf 'cacert = "/srv/check/ca.pem"\n' | inside tee /srv/check/.curlrc >/dev/null
    check "$1: it is ready" await 30 answers $site/readyz
    check "$1: a login" login "$(inside lakemill-ctl password)"
    check "$1: its cookie goes over TLS alone" says '#HttpOnly_.*TRUE' grep svc_session /srv/check/session
    check "$1: an upload of 100 MiB" uploads 200,201,204 100MiB
    check "$1: one of a byte more is refused by the service" uploads 413 more
    check "$1: a query" zeppelins_are 0
    check "$1: an export is streamed" exports
    check "$1: requests of another site are refused" says forbidden_origin curl -sS -b /srv/check/session -X POST \
        -H 'Sec-Fetch-Site: cross-site' $site/api/p/flights/jobs
    check "$1: metrics are not told" says '^404' curl -sS -o /dev/null -w '%{http_code}' $site/metrics
    check "$1: who guesses the password is known by its own address" guesses "$3"
    inside rm /srv/check/.curlrc
}

starts() { inside systemctl start "$1" || { inside journalctl --no-pager -n 20 -u "$1"; return 1; }; }

uploads() {
    local status
    status=$(api PUT "/api/lake?key=misc/$2" -T "/srv/check/$2" -o /srv/check/answer -w '%{http_code}')
    [[ ",$1," = *",$status,"* ]] || { echo "status $status, expected $1"; inside cat /srv/check/answer; return 1; }
}

exports() {
    api GET /api/p/flights/export -o /srv/check/export.zip -f && "$python" -m zipfile -t "$root/srv/check/export.zip"
}

guesses() {
    local status
    for _ in 1 2 3 4 5 6; do
        status=$(inside curl -sS --interface "$1" -o /dev/null -w '%{http_code}' -H 'content-type: application/json' \
            -d '{"password":"a-guess-of-many"}' $site/api/auth/login)
    done
    [ "$status" = 429 ] || { echo "after 6 guesses: $status, expected 429"; return 1; }
    login "$(inside lakemill-ctl password)" || { echo "others wait too"; return 1; }
}
