#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/test_consumer.hpp"
#include "support/test_relay.hpp"

namespace mailroom::test {

/// A real `mailroom send -v`.
class TestSender : public TestConsumer {
 public:
  TestSender(const std::string& conninfo, const std::string& relay,
             const std::vector<std::string>& options = {},
             std::map<std::string, std::string> environment = {});
};

/// The signed token of the link in a mail; empty if there is none.
std::string token_of(const TakenMail& mail);

/// The id of the token that a mail's Message-ID names; 0 if there is none.
std::int64_t token_id_of(const TakenMail& mail);

/// The id of the message that a mail's Message-ID names; 0 if there is none.
std::int64_t message_of(const TakenMail& mail);

}  // namespace mailroom::test
