#pragma once

#include <string>
#include <string_view>

#include "support/test_relay.hpp"
#include "support/tls_stream.hpp"

namespace mailroom::test {

/// The dialogue of a TestRelay with one client.
class RelayConversation {
 public:
  /// Takes `socket`.
  RelayConversation(TestRelay& server, int socket, int number);

  /// Talks until the client or the play ends it.
  void hold();

 private:
  using Then = RelayAnswer::Then;

  /// Answers as the play says; false if the conversation has ended.
  bool answer(RelayStep step, const std::string& usual);
  RelayAnswer ask(RelayStep step, const std::string& usual);
  bool give(const RelayAnswer& answer);
  bool finish(Then then);
  bool take_line(const std::string& line);
  bool greet_client();
  bool take_envelope(const std::string& verb, const std::string& line);
  bool start_tls();
  bool read_answers(const std::string& line, const std::string& mechanism, std::string& answers);
  std::string right_answers(const std::string& mechanism) const;
  bool authenticate(const std::string& line);
  bool take_message();
  bool take_chunk(const std::string& line);
  bool end_message();
  bool read_message(std::string& message);
  void record(const std::string& line);

  TestRelay& server_;
  const TestRelay::Options& options_;
  TlsStream stream_;
  RelayMoment moment_;
  TakenMail mail_;
  std::string user_;
  bool refused_ = false;  ///< the last answer was 4xx or 5xx
  bool has_sender_ = false;
  bool has_recipient_ = false;
};

}  // namespace mailroom::test
