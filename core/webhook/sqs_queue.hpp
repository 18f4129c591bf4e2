// A queue of Amazon SQS: receives messages, and deletes those that are on record.
#pragma once

#include <string>
#include <vector>

#include "carriers/http/exchange.hpp"
#include "carriers/ses/credentials.hpp"
#include "config/settings.hpp"

namespace mailroom::webhook {

struct SqsMessage {
  std::string receipt;  ///< by which it is deleted
  std::string body;
};

class SqsQueue {
 public:
  /// How long receive() waits for a message.
  static constexpr int wait_seconds = 5;

  /// `url`: https://sqs.REGION.amazonaws.com/ACCOUNT/NAME. Credentials are those of Amazon SES. Throws
  /// Error(configuration) for another URL, and as credential_source().
  SqsQueue(const std::string& url, const config::Settings& settings);

  /// At most 10 messages; they are hidden from others for the queue's visibility timeout, and come again then
  /// if they are not deleted. Throws Error(failed) with what SQS says.
  std::vector<SqsMessage> receive();
  /// Throws as receive(). One that is not deleted comes again.
  void remove(const std::vector<std::string>& receipts);

 private:
  std::string ask(const std::string& action, const std::string& body);

  std::string url_;
  std::string region_;
  std::string host_;
  http::HttpEndpoint endpoint_;
  ses::CredentialKeeper credentials_;
};

}  // namespace mailroom::webhook
