// SPDX-License-Identifier: MIT
// early.c for Node: node early.mjs 8080, and node early.mjs 8080 1 for HTTP/1.1
import http from 'node:http';
import http2 from 'node:http2';

const answer = (request, response) => {
  const end = (status, text) => { response.statusCode = status; response.end(text); };
  let size = 0;
  if (request.url === '/refuse')
    end(401, 'refused');
  else if (request.url === '/part')
    request.once('readable', () => { request.read(1000); end(403, 'a part was enough'); });
  else
    request.on('data', piece => { size += piece.length; }).on('end', () => end(200, String(size)));
  request.on('error', () => {});
};
(process.argv[3] === '1' ? http : http2).createServer(answer).listen(+process.argv[2], '127.0.0.1');
