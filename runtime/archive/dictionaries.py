"""What requests and layouts look like, as zstd dictionaries for small literals.

Part of the format: never change them.
"""

from __future__ import annotations

WIRE_DICTIONARY = (
    b'{"model":"gpt-","messages":[{"role":"system","content":"","type":"function",'
    b'"function":{"name":"python","arguments":"{\\"code\\":\\"","tool_choice":"auto",'
    b'"parallel_tool_calls":false,"stream":true,'
    b'"stream_options":{"include_usage":true},"max_tokens":,"temperature":0,'
    b'"tools":[{"cache_control":'
    b' {"type": "ephemeral"}},{"type": "text", "text": ""}, {"type": "tool_use", "id": "toolu_",'
    b' "name": "python", "input": {"code": "{"type": "tool_result", "tool_use_id": "toolu_",'
    b' "content": [{"type": "thinking", "thinking": "", "signature": ""}, {"role": "assistant",'
    b' "content": "", "tool_calls": [{"id": "call_", "type": "function", "function": {"name":'
    b' "python", "arguments": "{\\"code\\": \\"\\"}"}}]}, {"role": "tool", "tool_call_id": "call_",'
    b' "content":'
    b' ""},{"role":"assistant","content":"","tool_calls":[{"id":"call_",'
    b'"type":"function","function":{"name":"python",'
    b'"arguments":"{\\"code\\":\\"\\"}"}}]},{"role":"tool","tool_call_id":"call_",'
    b'"content":""},{"role":"user","content":""}]},'
    b' {"role": "user", "content": [{"type": "text", "text": ""}, {"role": "user", "content": "'
)

LAYOUT_DICTIONARY = (
    b'{"kind":"contract","origin":"contract","role":"system","text":"","tokens":1}\n'
    b'{"kind":"goal","origin":"event:1","role":"user","text":"","tokens":1}\n'
    b'{"kind":"reply","origin":"statement:1","role":"assistant","text":"",'
    b'"thinking":[{"type":"thinking","thinking":"",'
    b'"signature":""}],"tokens":1,"tool_calls":[{"arguments":"{\\"code\\":\\"\\"}",'
    b'"id":"call_","name":"python"}]}\n'
    b'{"kind":"result","origin":"statement:1","role":"tool","text":"","tokens":1,'
    b'"tool_call_id":"call_"}\n'
    b'{"kind":"view","origin":"node:","role":"user","text":"","tokens":1}\n'
    b'{"kind":"error","origin":"event:","role":"user","text":"","tokens":1}\n'
    b'{"kind":"group","origin":"node:","role":"user","text":"","tokens":1}\n'
    b'{"kind":"delta","origin":"tail","role":"user","text":"","tokens":1}\n'
    b'{"kind":"handles","origin":"tail","role":"user","text":"","tokens":1}\n'
    b'{"kind":"budget","origin":"tail","role":"user","text":"","tokens":1}\n'
    b'{"kind":"message","origin":"event:","role":"user","text":"","tokens":'
)
