// A template is taken or refused as usage, and no value of an event brings a control character into the line.

#include "base/error.hpp"
#include "cmd/events/event_text.hpp"
#include "cmd/tail/event_template.hpp"
#include "fuzz/fuzz.hpp"

using namespace mailroom;
using fuzz::require;

namespace {

auto count_controls(const std::string& line) {
  return std::count_if(line.begin(), line.end(), [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; });
}

/// An event of a batch, a token or an operation.
Event hostile_event(fuzz::Fields& fields) {
  const auto text = [&] { return std::string(fields.take()); };
  const auto at = bounded_moment(std::chrono::microseconds(fields.take_number()));
  const auto id = fields.take_number();
  const AccountRecord account{.id = id, .email = text(), .login = text()};
  switch (fields.take_number() % 3) {
    case 0:
      return {EventKind::emitted,
              at,
              BatchRecord{.id = id, .queue = text(), .tokens = {{id, id}}, .claimed_by = text()},
              {{id, id, fields.take_number()}}};
    case 1:
      return {EventKind::created, at,
              StoredToken{.id = id, .action = text(), .state = text(), .account = account}};
    default:
      return {EventKind::suspended, at,
              Operation{.actor = text(), .reason = text(), .queue = text(), .account = account}};
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Fields fields(data, size);
  const auto text = fields.take();
  const auto event = hostile_event(fields);
  try {
    const EventTemplate line(text);
    const auto rendered = line.render(event);
    require(rendered.ends_with('\n'), "a line has its end");
    require(count_controls(rendered) == count_controls(line.render({})), "no value has a control character");
    const auto shown = line.render(masked(event));
    require(shown.ends_with('\n'), "a masked line has its end");
  } catch (const Error& error) {
    require(error.code() == ExitCode::usage, "it is an error of usage");
    require(count_controls(error.what()) == 0, "an error has no control character");
  }
  return 0;
}
