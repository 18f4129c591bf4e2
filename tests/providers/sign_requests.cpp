// Signs requests to AWS that come as lines of JSON, and prints the header Authorization of each.

#include <iostream>
#include <string>

#include "base/json.hpp"
#include "carriers/ses/signature.hpp"

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto asked = mailroom::parse_json(line);
    const auto text = [&](const char* key) { return asked.at(key).get<std::string>(); };
    const auto body = text("body");
    const auto headers = mailroom::ses::signed_headers(
        {.method = text("method"),
         .host = text("host"),
         .path = text("path"),
         .content_type = text("content_type"),
         .target = text("target"),
         .body = body},
        {.key_id = text("key_id"), .secret = text("secret"), .session_token = text("token")},
        {.region = text("region"), .service = text("service")}, asked.at("now").get<std::int64_t>());
    std::cout << headers.back().substr(headers.back().find(' ') + 1) << '\n';
  }
}
