// What carries mails to Resend.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "carriers/carriers.hpp"
#include "carriers/http/carrier.hpp"

namespace mailroom::resend {

/// How many mails Resend takes in one request.
constexpr int resend_batch = 100;

/// Posts a mail, or several in one request, each for its one recipient; docs/providers.md says what the
/// answers mean. A request has a key made of its mails, by which Resend recognises it for 24 hours.
class ResendProtocol final : public http::HttpProtocol {
 public:
  ResendProtocol(http::HttpEndpoint endpoint, config::RelayPath path)
      : endpoint_(std::move(endpoint)), path_(std::move(path)) {}

  std::string problem_of(const delivery::Message& message) const override;
  http::HttpRequest request(const delivery::Message& message, std::int64_t now) override;
  delivery::Answer judge(const delivery::Message& message, const http::HttpOutcome& outcome,
                         std::int64_t now) override;
  bool keeps_message_id() const override { return false; }
  TimePoint next_request() const override { return next_request_; }
  bool is_about_one(const delivery::Answer& answer) const override {
    return answer.varies_with != delivery::VariesWith::nothing;
  }

 private:
  const http::HttpEndpoint endpoint_;
  const config::RelayPath path_;
  TimePoint next_request_{};
};

/// Throws Error(configuration) as parse_resend_endpoint() and read_resend_key().
std::unique_ptr<delivery::Carrier> make_resend_carrier(const config::RelayPath& path);

/// Asks whether the key holds and the sender's domain is verified. Sends nothing.
std::vector<carriers::SinkFinding> check_resend(const config::RelayPath& path,
                                                const mail::ConfiguredMail& mail);

/// A mail as Resend's API takes it.
struct ResendMail {
  std::string json;        ///< an object, without tags: `from`, `to`, `subject`, `text` and so on
  std::string message_id;  ///< of its header, without angle brackets; empty without one
  std::string date{};      ///< of its header
};

/// `bytes`: header and body with CRLF line ends, as MessageBuilder makes them. It goes to the recipient of
/// the envelope alone: Resend sends a mail to whomever its fields name. `tags`: JSON of an array, or empty.
/// The same mail has the same JSON. Throws Error(failed) for what is no mail.
ResendMail read_resend_mail(std::string_view bytes, const delivery::Envelope& envelope,
                            std::string_view tags);

/// What of a mail that its program has made has no field in Resend's API, so that the mail would arrive as
/// another one; empty if all has. Throws Error(failed) for what is no mail.
std::string inexpressible_part(std::string_view bytes);

}  // namespace mailroom::resend
