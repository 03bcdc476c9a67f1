// request <url> <token>: one GET; prints status, headers and body.
const [url, token] = process.argv.slice(1);
const answer = await fetch(url, { headers: token ? { authorization: `Bearer ${token}` } : {} });
const text = await answer.text();
console.log(JSON.stringify({ status: answer.status, headers: Object.fromEntries(answer.headers), text }));
