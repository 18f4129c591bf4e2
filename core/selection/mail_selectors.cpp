// Each selector is one clause, which is left out if the selector is not given.

#include "selection/mail_selectors.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace mailroom::selection {
namespace {

std::string texts_sql(std::string_view parameter, std::string_view key) {
  return fmt::format("(ARRAY(SELECT jsonb_array_elements_text({}::jsonb->'{}')))", parameter, key);
}

std::string domain_sql(std::string_view address, std::string_view parameter) {
  return fmt::format("lower(split_part({}, '@', -1)) = ANY {}", address, texts_sql(parameter, "domains"));
}

/// That a delivery `e`, at its last attempt or at an earlier one, was answered or named so.
std::string delivery_sql(const MailSelectors& selectors, std::string_view parameter) {
  std::string sql;
  if (!selectors.queue_ids.empty()) {
    sql += fmt::format(
        R"( AND EXISTS (SELECT FROM unnest{} q (id)
      WHERE strpos(concat(e.reply, e.earlier_attempts::text), q.id) > 0
        AND concat_ws(' ', e.reply, (SELECT string_agg(h.attempt->>'reply', ' ') FROM jsonb_array_elements(e.earlier_attempts) h (attempt)))
          ~ ('(^|[^[:alnum:]])' || regexp_replace(q.id, '([^[:alnum:]])', '\\\1', 'g') || '([^[:alnum:]]|$)')))",
        texts_sql(parameter, "queue_ids"));
  }
  if (!selectors.message_ids.empty()) {
    sql += fmt::format(
        " AND (e.message_id = ANY {0} OR EXISTS (SELECT FROM jsonb_array_elements(e.earlier_attempts) h (attempt) "
        "WHERE h.attempt->>'message_id' = ANY {0}))",
        texts_sql(parameter, "message_ids"));
  }
  return sql;
}

/// The message or the token that a Message-ID of mailroom names: `mailroom.AB12.m17.mailroom@app.example`.
struct NamedMail {
  bool is_message = false;
  std::int64_t id = 0;
};

std::optional<NamedMail> mail_named(std::string_view message_id) {
  constexpr std::string_view mark = ".mailroom@";
  const auto end = message_id.rfind(mark);
  if (end == std::string_view::npos) return std::nullopt;
  auto number = message_id.substr(0, end);
  const auto dot = number.rfind('.');
  number.remove_prefix(dot == std::string_view::npos ? number.size() : dot + 1);
  const bool is_message = number.starts_with('m');
  if (is_message) number.remove_prefix(1);
  const auto id = parse_number<std::int64_t>(number);
  return id ? std::optional(NamedMail{is_message, *id}) : std::nullopt;
}

/// True if no index finds mails by this Message-ID: a provider has made it.
bool is_of_provider(const std::string& message_id) {
  return message_id.ends_with(".amazonses.com");
}

/// The ids of tokens that may have one of these Message-IDs, as SQL, by index: delivery_sql() decides.
/// Empty if a provider has made one.
std::string tokens_with_message_ids(const MailSelectors& selectors, std::string_view parameter) {
  if (selectors.message_ids.empty() || std::ranges::any_of(selectors.message_ids, is_of_provider)) return {};
  return fmt::format(
      R"(ARRAY(SELECT v::bigint FROM jsonb_array_elements_text({0}::jsonb->'named_tokens') v
    UNION SELECT k.id FROM tokens k WHERE k.message IN (SELECT v::bigint FROM jsonb_array_elements_text({0}::jsonb->'named_messages') v)
    UNION SELECT d.token FROM mailroom_deliveries d WHERE d.message_id = ANY {1} AND d.message_id NOT LIKE '%.mailroom@%' AND d.message_id NOT LIKE '%.amazonses.com'))",
      parameter, texts_sql(parameter, "message_ids"));
}

/// The clauses about the row `m` of messages alone.
std::string content_sql(const MailSelectors& selectors, std::string_view parameter) {
  std::string sql;
  if (!selectors.roles.empty())
    sql += fmt::format(" AND m.enqueued_by = ANY {}", texts_sql(parameter, "roles"));
  if (!selectors.templates.empty()) {
    sql += fmt::format(
        " AND coalesce(m.template, (SELECT c.template FROM mailroom_actions c WHERE c.action = m.action)) = ANY {}",
        texts_sql(parameter, "templates"));
  }
  if (!selectors.locales.empty())
    sql += fmt::format(" AND m.locale = ANY {}", texts_sql(parameter, "locales"));
  if (!selectors.subjects.empty()) {
    // A raw mail has its subject in its header, encoded or not.
    sql += fmt::format(R"( AND EXISTS (SELECT FROM unnest{} s (part)
      WHERE strpos(lower(coalesce(m.subject, substring(encode(substring(m.raw FOR 8192), 'escape') FROM '(?in)^subject:[^\n]*'))), lower(s.part)) > 0))",
                       texts_sql(parameter, "subjects"));
  }
  return sql;
}

}  // namespace

bool MailSelectors::empty() const {
  return domains.empty() && roles.empty() && templates.empty() && subjects.empty() && locales.empty() &&
         queue_ids.empty() && message_ids.empty();
}

void MailSelectors::write(nlohmann::json& object) const {
  const auto add = [&](const char* key, const std::vector<std::string>& values) {
    if (!values.empty()) object[key] = values;
  };
  add("domains", domains);
  add("roles", roles);
  add("templates", templates);
  add("subjects", subjects);
  add("locales", locales);
  add("queue_ids", queue_ids);
  add("message_ids", message_ids);
  if (message_ids.empty()) return;
  object["named_messages"] = nlohmann::json::array();
  object["named_tokens"] = nlohmann::json::array();
  for (const auto& id : message_ids) {
    if (const auto named = mail_named(id))
      object[named->is_message ? "named_messages" : "named_tokens"].push_back(named->id);
  }
}

std::string MailSelectors::message_condition(std::string_view parameter) const {
  auto sql = content_sql(*this, parameter);
  if (const auto tokens = tokens_with_message_ids(*this, parameter); !tokens.empty())
    sql +=
        fmt::format(" AND m.id = ANY (ARRAY(SELECT k.message FROM tokens k WHERE k.id = ANY ({})))", tokens);
  if (!domains.empty()) {
    sql += fmt::format(
        " AND EXISTS (SELECT FROM unnest(coalesce(m.recipients || m.cc || m.bcc, ARRAY[a.email])) r (mailbox) WHERE {})",
        domain_sql("mailroom_address(r.mailbox)", parameter));
  }
  if (const auto delivered = delivery_sql(*this, parameter); !delivered.empty()) {
    sql +=
        " AND EXISTS (SELECT FROM tokens t JOIN mailroom_deliveries e ON e.token = t.id WHERE t.message = m.id" +
        delivered + ")";
  }
  return sql;
}

std::string MailSelectors::token_condition(std::string_view parameter, std::string_view queue) const {
  std::string sql;
  if (const auto tokens = tokens_with_message_ids(*this, parameter); !tokens.empty())
    sql += fmt::format(" AND t.id = ANY ({})", tokens);
  if (!domains.empty()) {
    sql +=
        " AND " +
        domain_sql(
            R"(CASE WHEN t.recipient IS NULL THEN (SELECT o.email FROM accounts o WHERE o.id = t.account) ELSE (
    SELECT mailroom_address((m.recipients || m.cc || m.bcc)[t.recipient]) FROM mailroom_messages m WHERE m.id = t.message) END)",
            parameter);
  }
  if (const auto content = content_sql(*this, parameter); !content.empty()) {
    auto clause = "EXISTS (SELECT FROM mailroom_messages m WHERE m.id = t.message" + content + ")";
    // The mail of an account has the template of its action, and nothing else of these.
    if (roles.empty() && subjects.empty() && locales.empty()) {
      clause = fmt::format(
          "({} OR t.message IS NULL AND EXISTS (SELECT FROM mailroom_actions c WHERE c.action = t.action::text "
          "AND c.template = ANY {}))",
          clause, texts_sql(parameter, "templates"));
    }
    sql += " AND " + clause;
  }
  if (const auto delivered = delivery_sql(*this, parameter); !delivered.empty()) {
    sql +=
        fmt::format(" AND EXISTS (SELECT FROM mailroom_deliveries e WHERE e.queue = {} AND e.token = t.id{})",
                    queue, delivered);
  }
  return sql;
}

std::string parse_domain(const std::string& option, const std::string& text) {
  const auto domain = lower_case(text.starts_with('@') ? text.substr(1) : text);
  if (!domain.empty() && domain.find_first_of("@ ") == std::string::npos) return domain;
  throw Error(ExitCode::usage, fmt::format("{} has '{}', which is no domain", option, text),
              "for example big.example, which is what follows the @");
}

std::string parse_message_id(const std::string& option, const std::string& text) {
  auto id = text;
  if (id.starts_with('<') && id.ends_with('>')) id = id.substr(1, id.size() - 2);
  if (id.find('@') != std::string::npos && id.find_first_of("<> ") == std::string::npos) return id;
  throw Error(ExitCode::usage, fmt::format("{} has '{}', which is no Message-ID", option, text),
              "for example '<mailroom.AB12.51.mailroom@app.example>', as the header of the mail has it");
}

}  // namespace mailroom::selection
