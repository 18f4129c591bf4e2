// mailroom key: makes, lists and revokes the keys with which programs ask for mails over HTTP.

#include <algorithm>
#include <fmt/format.h>

#include "api_keys/api_key.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "cmd/command.hpp"
#include "cmd/terminal/context.hpp"
#include "cmd/terminal/text_table.hpp"
#include "db/errors.hpp"
#include "queue/operation_author.hpp"

namespace mailroom::cmd {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// What programs look for at the beginning of a key.
constexpr const char* key_prefix = "re_";

/// The options and operands of all commands of key.
struct KeyOptions {
  std::string role;
  std::string name;
  std::string permission = "full_access";
  std::vector<std::string> ids;
  std::string reason;
};

OrderedJson key_json(const api_keys::ApiKey& key) {
  return {{"id", key.id},
          {"role", key.role},
          {"name", text_or_null<OrderedJson>(key.name)},
          {"permission", key.permission},
          {"created_at", moment_json<OrderedJson>(key.created_at)},
          {"revoked_at", key.revoked_at ? moment_json<OrderedJson>(*key.revoked_at) : OrderedJson(nullptr)},
          {"problem", text_or_null<OrderedJson>(key.problem)}};
}

ExitCode key_create(const KeyOptions& options, Context& context) {
  const auto connection = context.connect_to_schema("key");
  const auto author = queue::operator_author(*connection, options.reason);
  const auto key = api_keys::make_key(key_prefix);
  try {
    connection->transact([&](pqxx::work& transaction) {
      queue::set_author(transaction, author);
      api_keys::create_key(transaction, key,
                           {.role = options.role, .name = options.name, .permission = options.permission});
    });
  } catch (const db::DatabaseError& error) {
    if (error.sqlstate() != "22023" && error.sqlstate() != "42704") throw;
    throw Error(ExitCode::unusable, error.what(), error.hint());
  }
  if (context.global().output == OutputFormat::json) {
    context.print(json_text(OrderedJson{{"id", api_keys::id_of(key)},
                                        {"key", key},
                                        {"role", options.role},
                                        {"name", text_or_null<OrderedJson>(options.name)},
                                        {"permission", options.permission}}) +
                  "\n");
  } else {
    context.print(key + "\n");
  }
  return ExitCode::done;
}

ExitCode key_list(const KeyOptions& /*options*/, Context& context) {
  const auto connection = context.connect_to_schema("key");
  const auto keys = api_keys::list_keys(*connection);
  if (context.global().output == OutputFormat::json) {
    for (const auto& key : keys)
      context.print(json_text(key_json(key)) + "\n");
    return ExitCode::done;
  }
  if (keys.empty()) {
    context.print("no key; mailroom key create ROLE makes one\n");
    return ExitCode::done;
  }
  TextTable table({{"id"}, {"role"}, {"name"}, {"permission"}, {"created"}, {"revoked"}, {"problem"}});
  for (const auto& key : keys)
    table.add({shown_text(key.id), shown_text(key.role), key.name.empty() ? "-" : shown_text(key.name),
               key.permission, moment_text(key.created_at),
               key.revoked_at ? moment_text(*key.revoked_at) : "-",
               key.problem.empty() || key.revoked_at ? "-" : shown_text(key.problem)});
  context.print(table.render(context.out().columns().value_or(1000)));
  return ExitCode::done;
}

ExitCode key_revoke(const KeyOptions& options, Context& context) {
  const auto connection = context.connect_to_schema("key");
  const auto waits = context.watch_waits(*connection, "key");
  const auto author = queue::operator_author(*connection, options.reason);
  std::vector<std::string> unknown;
  connection->transact([&](pqxx::work& transaction) {
    unknown.clear();
    queue::set_author(transaction, author);
    for (const auto& id : options.ids)
      if (!api_keys::revoke_key(transaction, api_keys::id_of(id))) unknown.push_back(api_keys::id_of(id));
  });
  const bool json = context.global().output == OutputFormat::json;
  for (const auto& id : options.ids) {
    const bool is_known = std::ranges::find(unknown, api_keys::id_of(id)) == unknown.end();
    if (json) {
      context.print(json_text(OrderedJson{{"id", api_keys::id_of(id)}, {"carried_out", is_known}}) + "\n");
    } else if (is_known) {
      context.print(fmt::format("revoked {}\n", shown_text(api_keys::id_of(id))));
    }
  }
  if (unknown.empty()) return ExitCode::done;
  throw Error(ExitCode::unusable, fmt::format("there is no key {} that works", shown_text(unknown.front())),
              "mailroom key list shows the keys");
}

void add_create_options(CommandSyntax& syntax, KeyOptions& options) {
  syntax.text("ROLE", options.role, "the role as which a program asks for mails, reads and cancels them")
      .required();
  syntax.text("--name TEXT", options.name, "what has the key, for people");
  const config::Choices<std::string> permissions{{"full_access", "full_access"},
                                                 {"sending_access", "sending_access"}};
  syntax.choice("--permission WORD", options.permission, permissions, "full_access or sending_access",
                "full_access, or sending_access: send, and neither read nor cancel [full_access]");
  syntax.text("--reason TEXT", options.reason, "record TEXT as the reason");
}

void add_revoke_options(CommandSyntax& syntax, KeyOptions& options) {
  syntax.texts("KEY", options.ids, "the first 8 characters of a key").required();
  syntax.text("--reason TEXT", options.reason, "record TEXT as the reason");
}

/// In help order.
constexpr Subcommand<KeyOptions, Context&> key_actions[] = {
    {"create", "make a key of a role, and show it once", key_create, add_create_options},
    {"list", "list the keys, newest first", key_list, nullptr},
    {"revoke", "end keys, for good", key_revoke, add_revoke_options},
};

Run add_key(CommandSyntax& syntax) {
  auto options = std::make_shared<KeyOptions>();
  const auto chosen = syntax.commands(key_actions, *options);
  return [options, chosen](Context& context) { return (*chosen)->run(*options, context); };
}

}  // namespace

const Command key_command{
    "key", "make, list and revoke keys for mails over HTTP",
    "Examples:\n"
    "  mailroom key create shop --name web    make a key as which shop asks for mails\n"
    "  mailroom key list                      who has which key\n"
    "  mailroom key revoke re_AbCdE           end one\n",
    add_key,
    "A program that asks for mails over HTTP (submission.http) shows a key, and what it asks for is done as the role of the key, with the "
    "rights that PostgreSQL gives that role: it needs those of mailroom_producer. Its messages, and their idempotency keys, are its own.\n\n"
    "The database has the SHA-256 of a key, so that create shows it once and nobody can later. A role that may do more than ask for mails gets "
    "none, since keys leak. The role that takes the requests must be a member of it.\n\n"
    "revoke waits for what is being stored with the key; when it has ended, nothing is stored with it any more. Both are recorded in "
    "mailroom_operations. The role must own the tables. docs/http-api.md has the requests."};

}  // namespace mailroom::cmd
