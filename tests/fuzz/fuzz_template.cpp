// A template is taken or refused as usage, and no value of an event brings a control character into the line.

#include "base/error.hpp"
#include "cmd/tail/event_template.hpp"
#include "cmd/tail/event_text.hpp"
#include "fuzz/fuzz.hpp"

using namespace mailroom;
using fuzz::require;

namespace {

auto count_controls(const std::string& line) {
  return std::count_if(line.begin(), line.end(), [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; });
}

Event hostile_event(fuzz::Fields& fields) {
  Event event;
  event.kind = EventKind::emitted;
  event.time_us = fields.take_number();
  event.state = fields.take();
  event.action = fields.take();
  event.email = fields.take();
  event.login = fields.take();
  event.queue = fields.take();
  event.actor = fields.take();
  event.reason = fields.take();
  const auto id = fields.take_number();
  event.batch = id;
  event.tokens = {{id, id}};
  event.matches = {{id, id, fields.take_number()}};
  return event;
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
