// An event is one line, as text and as JSON, and no value of it brings a control character into the line.

#include "cmd/events/event_text.hpp"
#include "cmd/tail/tail_report.hpp"
#include "fuzz/fuzz.hpp"

namespace mailroom::fuzz::fuzz_event {
namespace {

auto count_controls(const std::string& line) {
  return std::count_if(line.begin(), line.end(), [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; });
}

/// An event of a batch, a token or an operation.
feed::Event hostile_event(Fields& fields) {
  const auto text = [&] { return std::string(fields.take()); };
  const auto at = bounded_moment(std::chrono::microseconds(fields.take_number()));
  const auto id = fields.take_number();
  const accounts::AccountRecord account{.id = id, .email = text(), .login = text()};
  switch (fields.take_number() % 3) {
    case 0:
      return {feed::EventKind::emitted,
              at,
              queue::BatchRecord{.id = id, .queue = text(), .tokens = {{id, id}}, .claimed_by = text()},
              {{id, id, fields.take_number()}}};
    case 1:
      return {feed::EventKind::created, at,
              feed::StoredToken{.id = id, .action = text(), .state = text(), .account = account}};
    default:
      return {feed::EventKind::suspended, at,
              feed::Operation{
                  .actor = text(), .reason = text(), .queue = text(), .account = account, .details = "{}"}};
  }
}

int run(const std::uint8_t* data, std::size_t size) {
  Fields fields(data, size);
  const auto columns = static_cast<std::size_t>(fields.take_number() & 0xff);
  const auto event = hostile_event(fields);
  cmd::EventLines lines(
      {.queue = "mailroom", .columns = columns < 40 ? std::nullopt : std::optional(columns)});
  for (const auto& shown : {event, cmd::masked(event)}) {
    for (const auto& line : {lines.render(shown), cmd::render_json(shown)}) {
      require(line.ends_with('\n'), "a line has its end");
      require(count_controls(line) == 1, "no value has a control character");
    }
  }
  return 0;
}

const Target target("event", run);

}  // namespace
}  // namespace mailroom::fuzz::fuzz_event
