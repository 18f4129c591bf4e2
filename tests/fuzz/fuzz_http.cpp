// A client may send anything, cut anywhere: the same requests are read, and what they ask for could be a
// mail.

#include <vector>

#include "fuzz/fuzz.hpp"
#include "http_door/http_reader.hpp"
#include "mail/address.hpp"
#include "resend_api/resend_shape.hpp"

namespace mailroom::fuzz::fuzz_http {
namespace {

using http_door::HttpReader;

constexpr std::size_t most_body = 4096;

/// The requests, and how the connection went on: the same however it is cut.
std::vector<http_door::Request> read(std::string_view bytes, std::size_t piece, std::string& end) {
  HttpReader reader(most_body);
  std::vector<http_door::Request> requests;
  for (std::string_view rest = bytes; !rest.empty() && end.empty();) {
    auto part = rest.substr(0, piece);
    rest.remove_prefix(part.size());
    for (bool goes_on = true; goes_on && end.empty();) {
      const auto event = reader.take(part);
      require(reader.held() <= most_body, "a body is not larger than it may be");
      goes_on = event == HttpReader::Event::head || event == HttpReader::Event::whole || !part.empty();
      if (event == HttpReader::Event::head) reader.go_on(requests.size() % 2 == 0);
      if (event == HttpReader::Event::whole) requests.push_back(reader.take_request());
      if (event == HttpReader::Event::malformed) end = reader.problem();
      if (event == HttpReader::Event::too_large) end = "too large";
    }
  }
  return requests;
}

void check_post(const http_door::Post& post) {
  for (const auto& mail : post.mails) {
    require(mail.contains("recipients") && !mail.at("recipients").empty(), "a mail has recipients");
    for (const auto& mailbox : mail.at("recipients"))
      require(std::holds_alternative<mail::Mailbox>(mail::parse_mailbox(mailbox.get<std::string>())),
              "each recipient is one mailbox");
  }
}

int run(const std::uint8_t* data, std::size_t size) {
  const auto text = text_of(data, size);
  std::string end;
  std::string same_end;
  const auto requests = read(text, std::max<std::size_t>(size, 1), end);
  const auto same = read(text, 1, same_end);
  require(requests.size() == same.size() && end == same_end, "a cut changes nothing");
  const resend_api::ResendShape shape;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    require(requests[i].path == same[i].path && requests[i].body == same[i].body &&
                requests[i].headers == same[i].headers,
            "a cut changes no request");
    const auto read = shape.read(requests[i], {.senders = {"@shop.example"}},
                                 {.now = Moment(std::chrono::hours(500'000)), .timezone = "UTC"});
    if (const auto* fault = std::get_if<http_door::Fault>(&read)) {
      require(shape.fault(*fault).status >= 400, "a fault is no success");
    } else if (const auto* post = std::get_if<http_door::Post>(&std::get<http_door::Operation>(read))) {
      check_post(*post);
    }
  }
  return 0;
}

const Target target("http", run);

}  // namespace
}  // namespace mailroom::fuzz::fuzz_http
