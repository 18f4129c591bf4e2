// A traceparent that is read says what its text says, and its spans are valid JSON whatever else they hold.

#include "base/encoded_text.hpp"
#include "base/json.hpp"
#include "fuzz/fuzz.hpp"
#include "otlp/otlp_json.hpp"

namespace mailroom::fuzz::fuzz_traceparent {
namespace {

int run(const std::uint8_t* data, std::size_t size) {
  const auto text = text_of(data, size);
  const auto parent = trace::parse_traceparent(text);
  if (parent) {
    const auto named = "-" + hex_text(parent->trace) + "-" + hex_text(parent->span) + "-";
    require(text.substr(2, named.size()) == named, "the ids are those of the text");
    require(parent->trace != trace::TraceId{} && parent->span != trace::SpanId{}, "no id is zero");
  }
  const std::string name(text);
  const trace::Span span{
      .operation = "carry", .queue = name, .action = name, .outcome = name, .sink = name, .has_failed = true};
  std::string body;
  otlp::append_otlp_json(body, {&span, 1});
  const auto json = try_parse_json(body);
  require(!json.is_discarded(), "a request is JSON");
  return 0;
}

const Target target("traceparent", run);

}  // namespace
}  // namespace mailroom::fuzz::fuzz_traceparent
