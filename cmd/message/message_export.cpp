// message export: writes what is on record of a person to a file, part by part.

#include "cmd/message/message_export.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "cmd/message/message_action.hpp"
#include "cmd/message/new_file.hpp"
#include "mail/address.hpp"
#include "messages/exporting.hpp"

namespace mailroom::cmd {
namespace {

std::string exported_address(const MessageOptions& options) {
  if (options.names.size() > 1) throw Error(ExitCode::usage, "an export is of one address");
  auto address = mail::address_of_mailbox(options.names.front());
  if (address.find('@') != std::string::npos) return address;
  throw Error(ExitCode::usage, fmt::format("'{}' is no address", shown_text(options.names.front())),
              "mailroom message export ada@example.org --to ada.json");
}

/// `3 messages, 4 deliveries`: the parts that have records.
std::string counts_text(const std::map<std::string_view, std::int64_t>& counts) {
  std::vector<std::string> parts;
  for (const auto& part : messages::export_parts()) {
    const auto found = counts.find(part.name);
    if (found == counts.end()) continue;
    std::string name(part.name);
    std::ranges::replace(name, '_', ' ');
    parts.push_back(fmt::format("{} {}", name, with_thousands(found->second)));
  }
  return parts.empty() ? "nothing is on record" : joined(parts, ", ");
}

}  // namespace

PersonExport export_person(db::Connection& connection, const std::string& address) {
  PersonExport written;
  auto& text = written.json;
  std::string_view open;
  text = fmt::format(R"({{"address":{},"made_at":"{}")", plain_json(nlohmann::json(address)),
                     moment_text(connection.server_time()));
  messages::read_export(connection, address,
                        [&](const messages::ExportPart& part, const std::string& record) {
                          if (open != part.name)
                            text += fmt::format("{},\n\"{}\":[\n", open.empty() ? "" : "]", part.name);
                          else
                            text += ",\n";
                          open = part.name;
                          text += record;
                          ++written.counts[part.name];
                        });
  text += open.empty() ? "}\n" : "]}\n";
  return written;
}

ExitCode message_export(const MessageOptions& options, Context& context) {
  const auto address = exported_address(options);
  const auto connection = context.connect_to_schema("message");
  const auto waits = context.watch_waits(*connection, "message");
  const auto written = export_person(*connection, address);
  write_new_file(options.file, written.json);
  context.print(fmt::format("wrote {}: {}\n", options.file, counts_text(written.counts)));
  return ExitCode::done;
}

}  // namespace mailroom::cmd
